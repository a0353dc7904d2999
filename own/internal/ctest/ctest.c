//go:build cgo && unix

#include <pthread.h>
#include <stdlib.h>

#include "ctest.h"

// These are exported by Go.
extern int ctestCalled(void *data, int n);
extern void ctestHandle(uintptr_t handle);
extern void ctestThread(void *data);

static _Atomic int alive;

// The objects that were freed. Their memory stays, because tests read what is in it.
static _Atomic(ctest_object *) freed;

ctest_object *ctest_new(void) {
	ctest_object *o = calloc(1, sizeof *o);
	if (o != NULL) {
		atomic_store(&o->alive, 1);
		atomic_fetch_add(&alive, 1);
	}
	return o;
}

void ctest_free(void *object) {
	ctest_object *o = object;
	ctest_emit(o, -1);
	atomic_store(&o->alive, 0);
	o->next = atomic_load(&freed);
	while (!atomic_compare_exchange_weak(&freed, &o->next, o))
		;
	atomic_fetch_sub(&alive, 1);
}

int ctest_alive(void) { return atomic_load(&alive); }

void ctest_connect(ctest_object *o, void *data) { atomic_store(&o->data, data); }

int ctest_emit(ctest_object *o, int n) {
	void *data = atomic_load(&o->data);
	return data != NULL ? ctestCalled(data, n) : -2;
}

void ctest_repeat(void *data, uintptr_t handle, long n) {
	for (long i = 0; i < n; i++) {
		if (handle != 0) {
			ctestHandle(handle);
		} else {
			ctestThread(data);
		}
	}
}

static _Atomic(void *) places[ctest_places];
static _Atomic long calls;
static _Atomic int stopped;
static pthread_t threads[16];
static int running;

void ctest_publish(int place, void *data) { atomic_store(&places[place], data); }

static void *run(void *argument) {
	unsigned x = (unsigned)(uintptr_t)argument * 7919u + 1;
	while (!atomic_load(&stopped)) {
		x = x * 1664525u + 1013904223u;
		void *data = atomic_load(&places[(x >> 16) % ctest_places]);
		if (data != NULL) {
			ctestThread(data);
			atomic_fetch_add(&calls, 1);
		}
	}
	return NULL;
}

int ctest_start(int n) {
	atomic_store(&stopped, 0);
	atomic_store(&calls, 0);
	for (running = 0; running < n && running < 16; running++) {
		if (pthread_create(&threads[running], NULL, run, (void *)(uintptr_t)running) != 0) {
			break;
		}
	}
	return running;
}

long ctest_calls(void) { return atomic_load(&calls); }

void ctest_stop(void) {
	atomic_store(&stopped, 1);
	while (running > 0) {
		pthread_join(threads[--running], NULL);
	}
}

void *ctest_data(ctest_object *o) { return atomic_load(&o->data); }
