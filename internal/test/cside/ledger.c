//go:build cgo && unix

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "ledger.h"

static const uint64_t alive = 0x6c6976656c697665, dead = 0xdeaddeaddeaddead;

// An entry is a resource. It is freed with its ledger, so that a destroyed entry can
// still be read.
struct entry {
	_Atomic uint64_t word; // alive or dead, or 0 when it was never created
	_Atomic uint32_t created, destroyed;
	_Atomic uint32_t children; // alive
	struct cside_ledger *ledger;
	struct entry *parent; // or NULL
	struct entry *next;   // free one, under the ledger's lock
};

struct cside_ledger {
	struct entry *entries;
	size_t room;
	int reuse;

	pthread_mutex_t lock;
	size_t fresh;       // entries before it have been created; under lock
	struct entry *free; // under lock, and empty without reuse

	_Atomic uint64_t twice, misplaced, dead_uses, orphans;
};

struct cside_ledger *cside_ledger_new(size_t room, int reuse) {
	struct cside_ledger *l = calloc(1, sizeof *l);
	if (l == NULL) {
		return NULL;
	}
	l->entries = calloc(room, sizeof *l->entries);
	if (l->entries == NULL) {
		free(l);
		return NULL;
	}
	l->room = room;
	l->reuse = reuse;
	pthread_mutex_init(&l->lock, NULL);
	return l;
}

void cside_ledger_free(struct cside_ledger *l) {
	pthread_mutex_destroy(&l->lock);
	free(l->entries);
	free(l);
}

void *cside_entry_create(void *ledger) {
	struct cside_ledger *l = ledger;
	pthread_mutex_lock(&l->lock);
	struct entry *e = l->free;
	if (e != NULL) {
		l->free = e->next;
	} else if (l->fresh < l->room) {
		e = &l->entries[l->fresh++];
	}
	pthread_mutex_unlock(&l->lock);
	if (e != NULL) {
		e->ledger = l;
		atomic_fetch_add(&e->created, 1);
		atomic_store(&e->word, alive);
	}
	return e;
}

void cside_entry_destroy(void *entry) {
	struct entry *e = entry;
	if (e == NULL || e->ledger == NULL) {
		fprintf(stderr, "cside: %p is destroyed, and was never created\n", entry);
		abort();
	}
	struct cside_ledger *l = e->ledger;
	if (atomic_exchange(&e->word, dead) != alive) {
		atomic_fetch_add(&l->twice, 1);
		return;
	}
	atomic_fetch_add(&e->destroyed, 1);
	atomic_fetch_add(&l->orphans, atomic_exchange(&e->children, 0));
	if (e->parent != NULL) {
		atomic_fetch_sub(&e->parent->children, 1);
		e->parent = NULL;
	}
	if (l->reuse) {
		pthread_mutex_lock(&l->lock);
		e->next = l->free;
		l->free = e;
		pthread_mutex_unlock(&l->lock);
	}
}

void cside_entry_destroy_of(void *ledger, void *entry) {
	struct cside_ledger *l = ledger;
	struct entry *e = entry;
	if (e->ledger != l) {
		atomic_fetch_add(&l->misplaced, 1);
	}
	cside_entry_destroy(e);
}

void cside_entry_destroy_all(const uintptr_t *entries, size_t n) {
	for (size_t i = 0; i < n; i++) {
		cside_entry_destroy((void *)entries[i]);
	}
}

void cside_entry_depend(void *entry, void *parent) {
	struct entry *e = entry;
	e->parent = parent;
	atomic_fetch_add(&e->parent->children, 1);
}

size_t cside_entry_use(void *entry, size_t times) {
	struct entry *e = entry;
	size_t found = 0;
	for (size_t i = 0; i < times; i++) {
		found += atomic_load(&e->word) != alive;
	}
	if (found > 0) {
		atomic_fetch_add(&e->ledger->dead_uses, found);
	}
	return found;
}

struct cside_report cside_ledger_report(struct cside_ledger *l) {
	struct cside_report r = {
		.twice = atomic_load(&l->twice),
		.misplaced = atomic_load(&l->misplaced),
		.dead_uses = atomic_load(&l->dead_uses),
		.orphans = atomic_load(&l->orphans),
	};
	for (size_t i = 0; i < l->room; i++) {
		struct entry *e = &l->entries[i];
		// Destroyed first, so that a resource that is created and destroyed
		// meanwhile is in balance.
		uint32_t destroyed = atomic_load(&e->destroyed), created = atomic_load(&e->created);
		r.created += created;
		r.destroyed += destroyed;
		if (created == destroyed + 1) {
			r.live++;
		} else if (created != destroyed) {
			r.unbalanced++;
		}
	}
	return r;
}
