//go:build ignore

// The stack of an allocation: first the frames of C, by the unwinder of the compiler
// (_Unwind_Backtrace), until a return address is in Go code, and then those of Go (gostack.c). Where C has
// called Go, the unwinder begins again with the function that has called crosscall2, whose registers that has
// saved; and so on.

#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/prctl.h>

struct walk {
	uintptr_t *pcs, caller;
	uint32_t n, most, skipped, seen;
	int code;          // what cmem_is_code said last
	uintptr_t go, sp;  // the address in Go code at which the frames of C end, and the stack pointer there
	struct jump *jump; // of beyond
};

// most_frames is how many frames of C are walked to find those of Go.
enum { most_frames = 1024 };

static _Unwind_Reason_Code frame(struct _Unwind_Context *at, void *walk) {
	struct walk *w = walk;
	uintptr_t pc = _Unwind_GetIP(at);
	if (pc == 0)
		return _URC_NORMAL_STOP;
	if (cmem_is_go(pc)) {
		w->go = pc;
		w->sp = _Unwind_GetCFA(at);
		return _URC_NORMAL_STOP;
	}
	if (w->n == 0 && w->caller && pc != w->caller && w->skipped < 8) { // of this package
		w->skipped++;
		return _URC_NO_REASON;
	}
	if (!(w->code = cmem_is_code(pc)))
		return _URC_NORMAL_STOP;
	if (w->n < w->most)
		w->pcs[w->n++] = pc;
	return ++w->seen < most_frames ? _URC_NO_REASON : _URC_NORMAL_STOP;
}

// beyond is frame for the functions behind a jump. The first that it gets is the one that has called the
// unwinder.
static _Unwind_Reason_Code beyond(struct _Unwind_Context *at, void *walk) {
	struct walk *w = walk;
	if (w->skipped++ == 0)
		return _URC_NO_REASON;
	return w->jump->taken ? frame(at, walk) : _URC_NORMAL_STOP; // another unwinder has tables of its own
}

// between adds the functions of C that have called a goroutine back: how many there are, and their return
// addresses.
static __attribute__((noinline)) void between(struct gowalk *g) {
	enum { most_between = 32 };
	uint32_t at = g->n++;
	struct jump jump;
	struct walk w = {.pcs = g->pcs + g->n, .most = g->most - g->n, .jump = &jump};
	if (w.most > most_between)
		w.most = most_between;
	if (cmem_may_unwind() && cmem_jump(&jump, g, (void *)between)) {
		cmem_tables_begin(&jump);
		_Unwind_Backtrace(beyond, &w);
		cmem_tables_end();
	}
	g->stack = w.go ? w.sp : UINTPTR_MAX;
	g->pcs[at] = w.n;
	g->n += w.n;
}

// The name of the thread that began the program, which others have from it.
static char program[16];

void cmem_walk_start(void) { prctl(PR_GET_NAME, program); }

__thread const struct cmem_stack *cmem_maker tls;

// add_maker adds the stack that has made the thread, or its innermost part.
static void add_maker(struct gowalk *g) {
	const struct cmem_stack *s = cmem_maker;
	uint32_t left = g->most - g->n, at = g->n, c, go;
	if (!s || left < 2)
		return;
	c = s->c < left - 1 ? s->c : left - 1;
	go = s->go < left - 1 - c ? s->go : 0; // a part may end within the name of a thread
	memcpy(&g->pcs[at + 1], s->pcs, c * sizeof *s->pcs);
	memcpy(&g->pcs[at + 1 + c], s->pcs + s->c, go * sizeof *s->pcs);
	g->pcs[at] = c;
	g->n += 1 + c + go;
	for (uint32_t i = 1; i <= c && s->closed != __atomic_load_n(&cmem_closed, __ATOMIC_RELAXED); i++)
		if (!cmem_initial(g->pcs[at + i]))
			g->pcs[at + i] = 0; // of a library that may have been unloaded
}

// add_thread adds the name of the thread to a stack that ends in C: it is a thread that C has made. Digits at its end,
// which tell threads of one kind apart, are left out. last is the number of the last frames of Go.
static void add_thread(struct gowalk *g, uint32_t last) {
	char name[16] = {0};
	uintptr_t words[sizeof name / sizeof(uintptr_t)];
	if ((g->n > 0 && (last > 0 || g->back == 0)) || g->n + 1 + sizeof words / sizeof *words > g->most ||
		prctl(PR_GET_NAME, name) != 0 || (!cmem_maker && strncmp(name, program, sizeof name) == 0))
		return;
	size_t n = strnlen(name, sizeof name);
	while (n > 0 && name[n - 1] >= '0' && name[n - 1] <= '9')
		n--;
	memset(name + n, 0, sizeof name - n);
	memcpy(words, name, sizeof words);
	g->pcs[g->n++] = cmem_thread_name;
	memcpy(&g->pcs[g->n], words, sizeof words);
	g->n += sizeof words / sizeof *words;
	add_maker(g);
}

uintptr_t cmem_walk(uintptr_t pcs[most_c + most_go], uint32_t *c, uint32_t *go, void *caller, struct copied *labels) {
	struct walk w = {.pcs = pcs, .most = most_c, .caller = (uintptr_t)caller};
	cmem_find_go();
	if (cmem_may_unwind()) {
		cmem_tables_begin(0);
		_Unwind_Backtrace(frame, &w);
		cmem_tables_end();
	}
	if (w.n == 0 && !cmem_is_go((uintptr_t)caller))
		pcs[w.n++] = (uintptr_t)caller; // the unwinder knows nothing of this function
	*c = w.n;
	struct gowalk g = {.pcs = pcs + w.n, .most = most_go};
	uint32_t n = cmem_go_frames(&g, w.go, w.sp);
	if (labels) {
		labels->n = labels->cut = 0;
		if (n > 0)
			cmem_labels_copy(labels, &g);
	}
	while (n > 0 && g.back != 0 && g.n + 1 < g.most) {
		between(&g);
		n = cmem_go_outer(&g);
	}
	add_thread(&g, n);
	*go = g.n;
	return w.go ? w.go : w.code == 2 || !cmem_may_unwind() ? cmem_somewhere : 0;
}

// walk_c walks the frames of C of a function that Go has called to learn something.
static void walk_c(struct walk *w) {
	if (cmem_may_unwind()) {
		cmem_tables_begin(0);
		_Unwind_Backtrace(frame, w);
		cmem_tables_end();
	}
}

int cmem_probe(uintptr_t pcs[cmem_probe_most]) {
	uintptr_t c[most_c];
	struct walk w = {.pcs = c, .most = most_c};
	walk_c(&w);
	struct gowalk g = {.pcs = pcs, .most = cmem_probe_most};
	return cmem_go_probe(&g, w.go, w.sp);
}

uint64_t cmem_labels_find(const char *text, const uint16_t *lengths, int n) {
	uintptr_t c[most_c], pcs[most_go];
	struct walk w = {.pcs = c, .most = most_c};
	walk_c(&w);
	struct gowalk g = {.pcs = pcs, .most = most_go};
	return cmem_go_frames(&g, w.go, w.sp) > 0 ? cmem_labels_search(&g, text, lengths, n) : 0;
}

int cmem_labels_now(char text[cmem_probe_text], uint16_t lengths[cmem_probe_labels]) {
	uintptr_t pcs[most_c + most_go];
	uint32_t c, go;
	struct copied l;
	cmem_walk(pcs, &c, &go, 0, &l);
	memcpy(text, l.text, l.n ? l.used : 0);
	for (int i = 0; i < l.n; i++) {
		lengths[2 * i] = l.of[i].key;
		lengths[2 * i + 1] = l.of[i].value;
	}
	return 2 * l.n;
}
