//go:build ignore
// A part of the library that cheap record preloads, and of no program.

// What the library does when the program starts, beside what package cmem does: it maps the file that
// it shares with the command (shared.c), takes its settings from the environment, and removes them
// and itself from there. The variables of the environment:
//
//	CHEAP_CMEM_RECORD           the file
//	CHEAP_CMEM_RECORD_RATE      the rate of samples
//	CHEAP_CMEM_RECORD_TRACE     if all calls are recorded: the functions whose blocks are marked
//	CHEAP_CMEM_RECORD_CHILDREN  if programs that the program starts are recorded: the folder for their files
//
// All numbers are hexadecimal. Programs that are started need this library, the rate and the folder: these stay.

#define _GNU_SOURCE
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef CMEM_SOURCE
// Of what this library was made: the command that preloads it reads it in the file.
__attribute__((used, section("cmem_source"))) static const char made_of[] = CMEM_SOURCE;
#endif

// number reads the hexadecimal number at *s, and the character behind it.
static uintptr_t number(const char **s) {
	char *end;
	uintptr_t n = strtoul(*s, &end, 16);
	*s = *end ? end + 1 : end;
	return n;
}

// hide takes the variables of the command out of the environment, and this library, which is the
// first that is preloaded. The runtime of Go, which may come with a library that is loaded later,
// reads the words that the kernel has written, and goes on behind them: there must be as many as
// before, so the last ones are empty. C code gets a copy without these.
static void hide(void) {
	extern char **environ;
	static const char preload[] = "LD_PRELOAD=", ours[] = "CHEAP_CMEM_RECORD";
	int children = getenv("CHEAP_CMEM_RECORD_CHILDREN") != 0;
	static char nothing[8];
	char **to = environ, **e = environ;
	if (!environ)
		return;
	for (; *e; e++) {
		if (strncmp(*e, ours, sizeof ours - 1) == 0 && (!children || (*e)[sizeof ours - 1] == '='))
			continue;
		if (!children && strncmp(*e, preload, sizeof preload - 1) == 0) {
			char *rest = strpbrk(*e, " :");
			if (!rest)
				continue;
			memmove(*e + sizeof preload - 1, rest + 1, strlen(rest + 1) + 1);
		}
		*to++ = *e;
	}
	size_t kept = to - environ;
	while (to < e)
		*to++ = nothing;
	char **copy =
		cmem_system_mmap(0, (kept + 1) * sizeof *copy, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy != MAP_FAILED)
		environ = memcpy(copy, environ, kept * sizeof *copy); // a 0 is behind them
}

struct header *cmem_preload_open(void) {
	const char *name = cmem_late ? 0 : getenv("CHEAP_CMEM_RECORD");
	const char *rate = cmem_late ? 0 : getenv("CHEAP_CMEM_RECORD_RATE");
	const char *folder = cmem_late ? 0 : getenv("CHEAP_CMEM_RECORD_CHILDREN");
	struct header *h = cmem_late ? cmem_attach_open()
		: name                   ? cmem_shared_open(name)
		: folder                 ? cmem_shared_make(folder)
								 : 0;
	if (h) {
		cmem_thread_fields(&h->fields);
		cmem_sample_fields(&h->fields);
		cmem_table_fields(&h->fields);
		h->fields.trace = (uintptr_t)&cmem_tracing;
		if (rate)
			cmem_set_rate(number(&rate));
	}
	return h;
}

void cmem_preload_begin(struct header *h, const char *off) {
	const char *name = getenv("CHEAP_CMEM_RECORD");
	const char *trace = cmem_late ? 0 : getenv("CHEAP_CMEM_RECORD_TRACE");
	cmem_shared_modules();
	cmem_find_go();
	if (trace) {
		struct module *m = (struct module *)h->modules;
		while (m && !((uintptr_t)cmem_preload_begin >= m->from && (uintptr_t)cmem_preload_begin < m->to))
			m = m->next;
		while (*trace && m) {
			uintptr_t from = h->program + number(&trace);
			cmem_trace_mark(from, h->program + number(&trace), m->from, m->to);
		}
	}
	strncpy(h->off, off, sizeof h->off - 1);
	memcpy(h->magic, "cheapmem", 8);
	h->version = 2;
	if (!cmem_late)
		hide();
	if (trace && *off == 0 && !cmem_trace_begin(cmem_trace_events, cmem_trace_patience))
		strcpy(h->off, "there is no room for the file that cheap and the program share");
	__atomic_store_n(&h->started, 1, __ATOMIC_RELEASE);
	if (!cmem_late && !name)
		cmem_shared_wait(h);
}
