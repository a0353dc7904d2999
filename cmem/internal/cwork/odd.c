//go:build cgo && linux

// Callers of malloc that a walk of the stack meets seldom: frame pointers that are none, functions
// without tables for unwinding, code that is made while the program runs, other stacks, signal
// handlers, and blocks that are not from malloc.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

// cwork_framed calls f(arg) with that frame pointer, cwork_untabled without a table for unwinding.
void cwork_framed(void (*f)(void *), void *arg, uintptr_t fp);
void cwork_untabled(void (*f)(void *), void *arg);
#if defined(__x86_64__)
__asm__(".text\n.type cwork_framed,@function\ncwork_framed:\n"
	".cfi_startproc\n"
	"push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %rbp, 0\n"
	"mov %rdi, %rax\nmov %rsi, %rdi\nmov %rdx, %rbp\n"
	"call *%rax\n"
	"pop %rbp\n.cfi_adjust_cfa_offset -8\n.cfi_restore %rbp\n"
	"ret\n.cfi_endproc\n.size cwork_framed,.-cwork_framed\n"
	".type cwork_untabled,@function\ncwork_untabled:\n"
	"push %rbp\nmov %rdi, %rax\nmov %rsi, %rdi\ncall *%rax\npop %rbp\nret\n.size cwork_untabled,.-cwork_untabled\n");
#elif defined(__aarch64__)
__asm__(".text\n.type cwork_framed,@function\ncwork_framed:\n"
	".cfi_startproc\n"
	"stp x29, x30, [sp, #-16]!\n.cfi_def_cfa_offset 16\n.cfi_offset x29, -16\n.cfi_offset x30, -8\n"
	"mov x9, x0\nmov x0, x1\nmov x29, x2\n"
	"blr x9\n"
	"ldp x29, x30, [sp], #16\n.cfi_def_cfa_offset 0\n.cfi_restore x29\n.cfi_restore x30\n"
	"ret\n.cfi_endproc\n.size cwork_framed,.-cwork_framed\n"
	".type cwork_untabled,@function\ncwork_untabled:\n"
	"stp x29, x30, [sp, #-16]!\nmov x9, x0\nmov x0, x1\nblr x9\nldp x29, x30, [sp], #16\nret\n.size cwork_untabled,.-cwork_untabled\n");
#else
void cwork_framed(void (*f)(void *), void *arg, uintptr_t fp) { f(arg); }
void cwork_untabled(void (*f)(void *), void *arg) { f(arg); }
#endif

extern void *cworkGo(int, size_t);

struct block {
	size_t n;
	void *p;
};
__attribute__((noinline)) static void takes(void *arg) {
	struct block *b = arg;
	b->p = malloc(b->n);
}
__attribute__((noinline)) static void back(void *arg) {
	struct block *b = arg;
	b->p = cworkGo(1, b->n);
}

// cwork_junk allocates n bytes with a frame pointer that is none, of kind k, below C and, if
// through_go is set, below Go that C has called. go is an address of Go code, heap one of Go memory.
// It returns 0 if there is no such kind.
void *cwork_junk(int k, int through_go, size_t n, uintptr_t go, uintptr_t heap) {
	static uintptr_t page; // not mapped
	uintptr_t fake[4];
	fake[0] = (uintptr_t)&fake[2]; // frames that lead on, with addresses of Go
	fake[1] = go;
	fake[2] = (uintptr_t)&fake[0];
	fake[3] = go;
	if (!page) {
		page = (uintptr_t)mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		munmap((void *)page, 4096);
	}
	uintptr_t fps[] = {0, 1, 16, page, page - 8, UINTPTR_MAX - 7, (uintptr_t)1 << 47, (uintptr_t)fake, heap, (uintptr_t)cwork_junk};
	if (k >= (int)(sizeof fps / sizeof *fps))
		return 0;
	struct block b = {n, 0};
	cwork_framed(through_go ? back : takes, &b, fps[k]);
	return b.p;
}

// cwork_without allocates below a function without a table.
void *cwork_without(size_t n) {
	struct block b = {n, 0};
	cwork_untabled(takes, &b);
	return b.p;
}

// cwork_coroutine allocates on a stack of the program. musl has the header for that, and not the
// functions.
#ifdef __GLIBC__
static ucontext_t here, there;
static struct block on_other;
static void coroutine(void) {
	takes(&on_other);
	swapcontext(&there, &here);
}
void *cwork_coroutine(size_t n) {
	enum { size = 128 << 10 };
	char *stack = malloc(size);
	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = size;
	there.uc_link = &here;
	makecontext(&there, coroutine, 0);
	on_other.n = n;
	swapcontext(&here, &there);
	free(stack);
	return on_other.p;
}
#else
void *cwork_coroutine(size_t n) { return malloc(n); }
#endif

// cwork_handmade allocates on a stack that begins with that return address, which is none.
#ifdef __x86_64__
void *cwork_stack_before, *cwork_stack;
void cwork_switch(void);
static struct block on_handmade;
__attribute__((used)) void cwork_on_handmade(void);
__asm__(".text\ncwork_switch: push %rbx\npush %rbp\npush %r12\npush %r13\npush %r14\npush %r15\n"
	"mov cwork_stack_before@GOTPCREL(%rip), %rax\nmov %rsp, (%rax)\n"
	"mov cwork_stack@GOTPCREL(%rip), %rax\nmov (%rax), %rsp\njmp cwork_on_handmade\n"
	"cwork_switch_back: mov cwork_stack_before@GOTPCREL(%rip), %rax\nmov (%rax), %rsp\n"
	"pop %r15\npop %r14\npop %r13\npop %r12\npop %rbp\npop %rbx\nret\n");
void cwork_on_handmade(void) {
	takes(&on_handmade);
	__asm__ volatile("jmp cwork_switch_back");
}
void *cwork_handmade(uintptr_t junk, size_t n) {
	char *stack = malloc(128 << 10);
	uintptr_t *top = (uintptr_t *)((uintptr_t)(stack + (127 << 10)) & ~(uintptr_t)15);
	*--top = junk;
	cwork_stack = top;
	on_handmade.n = n;
	cwork_switch();
	free(stack);
	return on_handmade.p;
}
#else
void *cwork_handmade(uintptr_t junk, size_t n) { return 0; }
#endif

#ifdef __x86_64__
// Code that is made while the program runs, and its table: it calls f(arg) with a frame of 8 bytes.
struct jit {
	uint8_t code[32], table[64];
};
static const uint8_t jit_code[] = {
	0x48, 0x83, 0xec, 0x08,             // sub $8, %rsp
	0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7, // mov %rdi, %rax; mov %rsi, %rdi
	0xff, 0xd0,                         // call *%rax
	0x48, 0x83, 0xc4, 0x08, 0xc3,       // add $8, %rsp; ret
};
static struct jit *jit_new(void) {
	struct jit *j = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *t = j->table;
	const uint8_t cie[] = {20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1, 0, 0, 0, 0, 0, 0};
	uint32_t length = 28, back = 28; // to the CIE
	uint64_t at = (uint64_t)j->code, size = sizeof j->code;
	memcpy(j->code, jit_code, sizeof jit_code);
	memcpy(t, cie, sizeof cie);
	memcpy(t + 24, &length, 4);
	memcpy(t + 28, &back, 4);
	memcpy(t + 32, &at, 8);
	memcpy(t + 40, &size, 8);
	const uint8_t moves[] = {0x44, 0x0e, 16, 0, 0, 0, 0, 0}; // behind 4 bytes the frame has 16
	memcpy(t + 48, moves, sizeof moves);
	memset(t + 56, 0, 4);
	return j;
}

static void (*add_frame)(void *), (*remove_frame)(void *);
static volatile int jit_stop;
static void *registers(void *arg) { // others look for frames meanwhile, with the lock of the unwinder
	while (!jit_stop) {
		struct jit *j = jit_new();
		add_frame(j->table);
		struct block b = {100, 0};
		((void (*)(void (*)(void *), void *))j->code)(takes, &b);
		free(b.p);
		remove_frame(j->table);
		munmap(j, 4096);
	}
	return 0;
}

// cwork_jit allocates n bytes below such code, while threads make more of it. It returns 0 if there is no
// unwinder that could know it.
void *cwork_jit(size_t n, int times) {
	pthread_t t[3];
	*(void **)&add_frame = dlsym(RTLD_DEFAULT, "__register_frame");
	*(void **)&remove_frame = dlsym(RTLD_DEFAULT, "__deregister_frame");
	if (!add_frame || !remove_frame)
		return 0;
	struct jit *j = jit_new();
	add_frame(j->table);
	jit_stop = 0;
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], 0, registers, 0);
	struct block b = {100, 0};
	for (int i = 0; i < times; i++) {
		((void (*)(void (*)(void *), void *))j->code)(takes, &b);
		free(b.p);
	}
	jit_stop = 1;
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	b.n = n;
	((void (*)(void (*)(void *), void *))j->code)(takes, &b);
	return b.p; // the code stays, as the stack does
}
#else
void *cwork_jit(size_t n, int times) { return 0; }
#endif

// cwork_signals has a timer interrupt this thread, whose handler allocates. The thread does nothing
// meanwhile that a handler must not interrupt. It returns how often the handler ran.
static volatile int handled, may;
static void handler(int sig) {
	if (!may)
		return; // malloc may be at work
	void *volatile p = malloc(300);
	p = realloc(p, 5000);
	free(p);
	handled++;
}
int cwork_signals(int times) {
	struct sigaction a = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_RESTART}, was;
	handled = 0;
	sigaction(SIGUSR2, &a, &was);
	for (int i = 0; i < times; i++) {
		void *volatile p = malloc(200);
		free(p);
		may = 1;
		__asm__ volatile("" ::: "memory");
		pthread_kill(pthread_self(), SIGUSR2);
		may = 0;
	}
	sigaction(SIGUSR2, &was, 0);
	return handled;
}

// cwork_foreign frees and reallocates blocks that malloc of the program has not returned, and has
// the C library free blocks that it has. It returns what is wrong, or 0.
const char *cwork_foreign(void) {
	void *(*their_malloc)(size_t) = dlsym(RTLD_NEXT, "malloc");
	void (*their_free)(void *) = dlsym(RTLD_NEXT, "free");
	if (!their_malloc || !their_free)
		return "no allocator";
	for (int i = 0; i < 2000; i++) {
		size_t n = 24 + i % 300;
		char *p = their_malloc(n);
		memset(p, 3, n);
		if (!(p = realloc(p, 2 * n)) || p[0] != 3 || p[n - 1] != 3)
			return "realloc";
		free(p);
		free(their_malloc(n));
		their_free(malloc(n)); // the same address comes again, and its sample is over
		char *q = malloc(n);
		their_free(q);
	}
	return 0;
}

static void late(void) {
	void *volatile p = malloc(700);
	free(p);
	(void)!write(1, "late\n", 5);
}
__attribute__((destructor)) static void later(void) {
	void *volatile p = malloc(800);
	free(p);
}
// cwork_exit ends the process, with functions that allocate.
void cwork_exit(void) {
	atexit(late);
	exit(0);
}

// cwork_tables compares the tables for unwinding that package cmem finds with those of libgcc, at every 16th byte of
// the code of all files. It returns how many addresses have one, and how many have another one in *wrong.
struct bases {
	void *text, *data, *function;
};
extern const void *_Unwind_Find_FDE(void *, struct bases *) __attribute__((weak));
extern const void *cmem_module_table(uintptr_t pc, void **function) __attribute__((weak));
static int in_file(struct dl_phdr_info *info, size_t size, void *arg) {
	int *n = arg;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
		if (info->dlpi_phdr[i].p_type != PT_LOAD || !(info->dlpi_phdr[i].p_flags & PF_X))
			continue;
		for (uintptr_t pc = from; pc < from + info->dlpi_phdr[i].p_memsz; pc += 16) {
			struct bases b = {0};
			void *function = 0;
			const void *theirs = _Unwind_Find_FDE((void *)pc, &b), *ours = cmem_module_table(pc, &function);
			n[0] += theirs != 0;
			n[1] += theirs != ours || (theirs && function != b.function);
		}
	}
	return 0;
}
int cwork_tables(int *wrong) {
	int n[2] = {0};
	if (_Unwind_Find_FDE && cmem_module_table)
		dl_iterate_phdr(in_file, n);
	*wrong = n[1];
	return n[0];
}

// cwork_table_gone asks for a table of a library, and again after the C library has unloaded it without a call of
// dlclose of the program, as it does with those of iconv. It returns 1 if there was one only before, and -1 if it cannot
// be tried.
int cwork_table_gone(void) {
	void *lib = dlopen("libnss_compat.so.2", RTLD_NOW | RTLD_LOCAL), *libc = dlopen("libc.so.6", RTLD_NOW), *function;
	int (*close)(void *) = libc ? (int (*)(void *))dlsym(libc, "dlclose") : 0;
	if (libc && !close) { // before glibc 2.34
		void *libdl = dlopen("libdl.so.2", RTLD_NOW);
		close = libdl ? (int (*)(void *))dlsym(libdl, "dlclose") : 0;
	}
	uintptr_t pc = lib ? (uintptr_t)dlsym(lib, "_nss_compat_setpwent") : 0;
	if (!lib || !close || !cmem_module_table)
		return -1;
	const void *before = cmem_module_table(pc, &function);
	close(lib);
	return before && !cmem_module_table(pc, &function);
}

// cwork_tables_as is cmem_tables_as.
extern int cmem_tables_as(int which) __attribute__((weak));
int cwork_tables_as(int which) { return cmem_tables_as ? cmem_tables_as(which) : -1; }
