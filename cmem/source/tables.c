//go:build ignore

// The tables by which the unwinder goes from a function to its caller. libgcc asks _Unwind_Find_FDE for the
// table of an address, and the process calls the function of that name of this file. In the library of cheap record only
// the unwinder that is linked into that does.
//
// For a function without a table, libgcc checks whether its code is that of a signal handler's return:
// it reads at the return address, which may not be mapped, for example at the end of a stack that the
// program has made by itself. So in a walk of this package such a function gets the table ends, which
// says that the stack ends there. Unwinding for C++ exceptions finds the same tables as without this.
//
// A walk that goes on behind a callback gives the function that has called the unwinder a table of its own,
// a jump: it says that its caller is the function of C that has called crosscall2.

#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

// Which tables the unwinder gets in a walk.
static enum {
	no_tables =
		cmem_no_tables, // it must not be called: it would take a lock, with which the program may wait for this thread
	its_own = cmem_its_own_tables,       // libgcc finds them without a lock
	of_modules = cmem_tables_of_modules, // this file does
} tables;

// The file that has the unwinder; 0 if it is linked into the program.
static uintptr_t unwinder, unwinder_end;

static __thread volatile int walking tls; // 2: the last function had no table
static __thread struct jump *volatile jump tls;
static volatile int asked; // the unwinder has called cmem_find_table

void cmem_tables_begin(struct jump *j) {
	jump = j;
	walking = 1;
}

void cmem_tables_end(void) {
	walking = 0;
	jump = 0;
}

#if (defined(__GLIBC__) || defined(CMEM_SHARED)) && (defined(__x86_64__) || defined(__aarch64__))
#define EXPORTS_TABLE
#ifdef __x86_64__
enum { stack_register = 7, return_register = 16 };
#else
enum { stack_register = 31, return_register = 30 };
#endif
static const struct table ends = {
	// Version 1; code by 1, data by -8; the frame begins at the stack pointer, nothing is returned to.
	20, 0, {1, 0, 1, 0x78, return_register, 0x0c, stack_register, 8, 0x07, return_register}, 28, 28, 0, 0, {0}};

struct bases {
	void *text, *data, *function;
};
#ifdef CMEM_SHARED
hidden const void *cmem_find_table(void *, struct bases *);
hidden const void *_Unwind_Find_FDE(void *, struct bases *) __attribute__((alias("cmem_find_table")));
static const void *next_table(void *pc, struct bases *b) { return 0; } // nobody else calls it
#else
EXPORT(const void *, _Unwind_Find_FDE, (void *, struct bases *), cmem_find_table)

// This brings the function of libgcc along where that is linked statically. Then it is called.
extern void __register_frame(void *);
__attribute__((used)) static void (*const bring)(void *) = __register_frame;

static const void *next_table(void *pc, struct bases *b) {
	static const void *(*next)(void *, struct bases *);
	const void *(*f)(void *, struct bases *) = __atomic_load_n(&next, __ATOMIC_RELAXED);
	if (!f) {
		*(void **)&f = dlsym(RTLD_NEXT, "_Unwind_Find_FDE");
		__atomic_store_n(&next, f, __ATOMIC_RELAXED);
	}
	return f ? f(pc, b) : 0;
}
#endif

const void *cmem_find_table(void *pc, struct bases *b) {
	const void *table;
	struct jump *j = jump;
	// The first address in it, or near behind it, is where it has called the unwinder.
	if (j && (uintptr_t)pc - j->function < 1024 && (!j->taken || j->taken == (uintptr_t)pc)) {
		j->taken = (uintptr_t)pc;
		*b = (struct bases){0, 0, pc};
		return &j->table.fde_length;
	}
	if (!walking || tables != of_modules) {
		table = next_table(pc, b);
		if (!walking)
			return table;
	} else {
		asked = 1;
		table = cmem_module_table((uintptr_t)pc, &b->function);
		b->text = b->data = 0;
	}
	walking = table ? 1 : 2;
	if (table)
		return table;
	*b = (struct bases){0, 0, pc};
	return &ends.fde_length;
}

enum { offset_of_expression = 0x10, cfa_of_expression = 0x0f, address = 0x0e }; // of DWARF

// rule says that a register was saved at an address, or, with -1, that the frame begins there.
static uint8_t *rule(uint8_t *to, int reg, uint64_t at) {
	*to++ = reg < 0 ? cfa_of_expression : offset_of_expression;
	if (reg >= 0)
		*to++ = reg;
	*to++ = 1 + sizeof at;
	*to++ = address;
	memcpy(to, &at, sizeof at);
	return to + sizeof at;
}

// rules writes where crosscall2, which has called cgocallback, has saved the registers of its caller. It
// returns 0 if crosscall2 is not as is known here.
#ifdef __x86_64__
static uint8_t *rules(uint8_t *to, struct gowalk *w) {
	uintptr_t at[2], saved, words[5 + 3], *frame = words + 5;
	// The frame pointer of crosscall2 leads to the one that the assembler has it save before, or is that. All that
	// the unwinder will read is read here first: the five registers below it as well.
	if (cmem_read_memory(w->fd, at, w->back, sizeof at) != sizeof at || !cmem_is_go(at[1]) || at[0] <= w->back ||
		cmem_read_memory(w->fd, words, (saved = at[0]) - 40, sizeof words) != sizeof words)
		return 0;
	uintptr_t top = saved + (frame[0] == saved + 8 ? 8 : 0);
	if (cmem_is_go(frame[1 + (top - saved) / 8]))
		return 0;
	static const uint8_t regs[] = {3, 12, 13, 14, 15}; // rbx, r12 to r15
	for (int i = 0; i < 5; i++)
		to = rule(to, regs[i], saved - 40 + 8 * i);
	to = rule(to, 6, top); // rbp
	to = rule(to, return_register, top + 8);
	return rule(to, -1, top + 16);
}
#else
static uint8_t *rules(uint8_t *to, struct gowalk *w) {
	// asmcgocall has written over the frame pointer that cgocallback has saved below its stack pointer.
	uintptr_t pc, saved[2], stack = w->back + 56; // the stack pointer of crosscall2
	if (cmem_read_memory(w->fd, &pc, w->back + 8, sizeof pc) != sizeof pc || !cmem_is_go(pc) ||
		cmem_read_memory(w->fd, saved, stack + 176, sizeof saved) != sizeof saved || saved[0] <= stack ||
		cmem_is_go(saved[1]))
		return 0;
	for (int i = 0; i < 10; i++)
		to = rule(to, 19 + i, stack + 32 + 8 * i);
	to = rule(to, 29, stack + 176);
	to = rule(to, return_register, stack + 184);
	return rule(to, -1, stack + 192);
}
#endif

int cmem_jump(struct jump *j, struct gowalk *w, void *function) {
	if ((unwinder == 0 && tables != of_modules) || w->back <= w->stack)
		return 0; // the unwinder is linked into the program, and does not call cmem_find_table
	memset(j, 0, sizeof *j);
	j->function = (uintptr_t)function;
	j->table =
		(struct table){20, 0, {1, 0, 1, 0x78, return_register}, sizeof j->table + sizeof j->rules - 28, 28, 0, 0, {0}};
	return rules(j->rules, w) != 0;
}
#else
int cmem_jump(struct jump *j, struct gowalk *w, void *function) { return 0; }
#endif

int cmem_is_code(uintptr_t pc) {
	struct object o;
	if (walking != 2)
		return 1;
	int in = tables == of_modules ? cmem_in_module(pc - 1)
								  : !cmem_find_object || cmem_find_object((void *)(pc - 1), &o) == 0;
	return in ? 2 : 0;
}

int cmem_may_unwind(void) { return tables != no_tables; }

int cmem_tables_as(int which) {
	int was = tables;
	if (which != was)
		tables = which;
	return was;
}

#ifdef EXPORTS_TABLE
static _Unwind_Reason_Code nothing(struct _Unwind_Context *at, void *arg) { return _URC_NO_REASON; }

// try_modules finds out whether the unwinder asks this file.
static void try_modules(void) {
	tables = of_modules;
	cmem_tables_begin(0);
	_Unwind_Backtrace(nothing, 0);
	cmem_tables_end();
	if (!asked)
		tables = no_tables;
}
#endif

void cmem_tables_start(void) {
	cmem_modules_start();
#ifdef CMEM_SHARED
	try_modules();
#else
	uintptr_t here = (uintptr_t)cmem_tables_start, from, to;
	uintptr_t at = (uintptr_t)dlsym(RTLD_DEFAULT, "_Unwind_Backtrace");
	if (!at)
		at = (uintptr_t)_Unwind_Backtrace;
	if (!at || !cmem_module_of(at, &from, &to))
		return;
	if (here >= from && here < to) {
		// It is linked into the program, and calls no function of this file. Before GCC 13 it allocates with a lock
		// held that it needs to look at a stack.
		tables = cmem_find_object && __GNUC__ >= 13 ? its_own : no_tables;
		return;
	}
	unwinder = from;
	unwinder_end = to;
	if (cmem_find_object)
		tables = its_own;
#ifdef EXPORTS_TABLE
	cmem_find_table((void *)&ends, &(struct bases){0}); // finds the next one, before it is needed
	if (!cmem_find_object)
		try_modules();
#endif
#endif
}

int cmem_unwinds(void *caller) { return (uintptr_t)caller >= unwinder && (uintptr_t)caller < unwinder_end; }
