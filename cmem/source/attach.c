//go:build ignore
// A part of the library that cheap record preloads, and of no program.

// What the library does where cheap record -pid has loaded it into a process that runs. No symbol of it comes before
// those of the process then, so nobody calls its malloc. It is called by slots: the words in the tables of each file by
// which that calls functions of other files.
//
//	1. The command writes struct attach into the library before it is loaded. The constructor makes a thread, which does
//	   whatever else there is to do: the thread of the program that has loaded the library goes on. If the command does
//	   not wait any more, all there is to do is to unmap the library.
//	2. The thread maps the file that it shares with the command, and prepares as at the start of a program (start.c).
//	3. It puts functions of this package into the slots: those that free first, so that no sampled block is freed unseen.
//	4. It waits for the command, which says each half second that it lives. Files that are loaded meanwhile have their slots
//	   changed then.
//	5. At the end, or four seconds after the command was heard last, all slots get back what they had, those that free
//	   last, and the thread ends. The library stays mapped: a thread may be in it, or the program may have copied the
//	   address of a function from a slot.
//
// A slot is changed only if it has the function that this package calls on to, and changed back only if it has that of
// this package. So what is in a slot need not be remembered, and a file that is loaded or unloaded meanwhile, or that calls
// another allocator, is left as it is. All this is done in calls of dl_iterate_phdr: while its lock is held no
// file is added to the list, and none of it is unmapped. A file that is being loaded is in the list before the dynamic
// linker has written its slots, into pages that are read-only later. So slots are changed only while the list
// is the same as before a call of dlopen, which waits until others have ended. With musl each step to the next file waits
// for that, and no file is ever unmapped.

#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __x86_64__

// The command looks for the magic in the file. The rest is 0 in a library that is preloaded. volatile because the
// compiler sees nobody write it.
struct attach {
	char magic[16];
	uint64_t late;
	struct descriptor {
		uint64_t fd, device, inode;
	} shared, image; // the file that both have mapped; the library
	int64_t rate;
};
__attribute__((used, aligned(16))) static volatile struct attach attach = {"cheap attach v1"};

static struct attached *command; // in the shared file; 0 if the library was preloaded

// is_own reports whether a number is still that of a file of the command: the program may close all that it does not know.
static int is_own(volatile struct descriptor *d) {
	struct stat st;
	return fstat(d->fd, &st) == 0 && st.st_dev == d->device && st.st_ino == d->inode;
}

static void close_own(volatile struct descriptor *d) {
	if (is_own(d))
		syscall(SYS_close, (int)d->fd);
}

#ifdef __GLIBC__
enum { is_glibc = 1 };
static int own_handle(void **to) {
	Dl_info of;
	return dladdr1((void *)own_handle, &of, to, RTLD_DL_LINKMAP) != 0;
}
#else
enum { is_glibc = 0 };
static int own_handle(void **to) { return 0; }
#endif

enum pass { free_pass, realloc_pass, malloc_pass, passes };
enum probe { by_none, by_pointer, by_size, by_two_sizes, by_block, by_array, by_place, by_zeros };

extern void *cmem_calloc(size_t, size_t), *cmem_realloc(void *, size_t), *cmem_reallocarray(void *, size_t, size_t);
extern void *cmem_memalign(size_t, size_t), *cmem_aligned_alloc(size_t, size_t);
extern void *cmem_valloc(size_t), *cmem_pvalloc(size_t);
extern int cmem_posix_memalign(void **, size_t, size_t);
extern void *cmem_mmap(void *, size_t, int, int, int, off_t), *cmem_mmap64(void *, size_t, int, int, int, int64_t);
extern void *cmem_mremap(void *, size_t, size_t, int, ...);
extern int cmem_munmap(void *, size_t), cmem_dlclose(void *);

// A function of this package, and the one that it calls on to, or a function of this package in place of that. The passes are taken in order, and back at the end. probe
// says how a slot is called that the dynamic linker has not filled in yet, so that it does.
static struct function {
	const char *name;
	void *hook;
	enum pass pass;
	enum probe probe;
	void *next;
} functions[] = {
#define FUNCTION(name, pass, probe) \
	{ #name, cmem_##name, pass, probe, 0 }
	FUNCTION(free, free_pass, by_pointer),
	FUNCTION(realloc, realloc_pass, by_block),
	FUNCTION(reallocarray, realloc_pass, by_array),
	FUNCTION(malloc, malloc_pass, by_size),
	FUNCTION(calloc, malloc_pass, by_two_sizes),
	FUNCTION(memalign, malloc_pass, by_two_sizes),
	FUNCTION(aligned_alloc, malloc_pass, by_two_sizes),
	FUNCTION(posix_memalign, malloc_pass, by_place),
	FUNCTION(valloc, malloc_pass, by_none),
	FUNCTION(pvalloc, malloc_pass, by_none),
	FUNCTION(munmap, free_pass, by_zeros),
	FUNCTION(mremap, realloc_pass, by_zeros),
	FUNCTION(mmap, malloc_pass, by_zeros),
	FUNCTION(mmap64, malloc_pass, by_zeros),
#ifdef __GLIBC__ // that of musl does nothing
	FUNCTION(dlclose, malloc_pass, by_none),
#endif
};
enum { num_functions = sizeof functions / sizeof *functions };

static void find_functions(void) {
	for (struct function *f = functions; f < functions + num_functions; f++)
		f->next = dlsym(cmem_behind, f->name);
}

static struct function *function_of(const char *name) {
	for (int i = 0; i < num_functions; i++)
		if (strcmp(functions[i].name, name) == 0)
			return &functions[i];
	return 0;
}

// A walk goes through the slots of all files.
struct walk_slots {
	enum pass pass;
	int on;
	unsigned long long files; // that may be in the list, if on
	uint64_t changed, left;   // left: that could not be changed back
};

// resolve has the dynamic linker fill in a slot: by a call that changes nothing, or whose block is freed again.
static void resolve(const struct function *f, void **slot) {
	void *block = 0, *at = __atomic_load_n(slot, __ATOMIC_RELAXED);
	enum { size = 16 };
	switch (f->probe) {
	case by_none: return;
	case by_pointer: ((void (*)(void *))at)(0); return;
	case by_zeros: ((long (*)(long, long, long, long, long, long))at)(0, 0, 0, 0, 0, 0); return; // EINVAL
	case by_size: block = ((void *(*)(size_t))at)(size); break;
	case by_block: block = ((void *(*)(void *, size_t))at)(0, size); break;
	case by_array: block = ((void *(*)(void *, size_t, size_t))at)(0, 1, size); break;
	case by_two_sizes: block = ((void *(*)(size_t, size_t))at)(size, size); break;
	case by_place:
		if (((int (*)(void **, size_t, size_t))at)(&block, size, size) != 0)
			block = 0;
	}
	if (__atomic_load_n(slot, __ATOMIC_RELAXED) == f->next)
		cmem_next.free(block); // else it is of another allocator, and stays
}

// A file is one that is mapped: its slots, and what says whether they can be written.
struct file {
	struct dl_phdr_info *info;
	uintptr_t from, to;
	const ElfW(Sym) * symbols;
	const char *strings;
	struct walk_slots *walk;
};

// may_write reports whether a word lies in memory that the file can write, and whether it could only while it was loaded.
static int may_write(const struct file *f, uintptr_t at, int *read_only) {
	int writes = 0;
	uintptr_t page = getauxval(AT_PAGESZ);
	*read_only = 0;
	for (int i = 0; i < f->info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &f->info->dlpi_phdr[i];
		uintptr_t from = f->info->dlpi_addr + p->p_vaddr, to = from + p->p_memsz;
		if (p->p_type == PT_LOAD && p->p_flags & PF_W)
			writes |= at >= from && at + sizeof at <= to;
		// The dynamic linker makes the whole pages of this part read-only.
		if (p->p_type == PT_GNU_RELRO)
			*read_only |= at >= (from & -page) && at < (to & -page);
	}
	return writes && at % sizeof at == 0;
}

// change puts a function into a slot that has another one. It returns 0 if it has not.
static int change(void **slot, void *from, void *to, int read_only) {
	uintptr_t size = getauxval(AT_PAGESZ);
	void *page = (void *)((uintptr_t)slot & -size);
	if (__atomic_load_n(slot, __ATOMIC_RELAXED) != from || (read_only && mprotect(page, size, PROT_READ | PROT_WRITE)))
		return 0;
	int done = __atomic_compare_exchange_n(slot, &from, to, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	if (read_only)
		mprotect(page, size, PROT_READ);
	return done;
}

static int is_in(const struct file *f, uintptr_t at) { return at >= f->from && at < f->to; }

static void change_slots(const struct file *f, const ElfW(Rela) * all, size_t n) {
	for (size_t i = 0; i < n; i++) {
		int type = ELF64_R_TYPE(all[i].r_info), read_only;
		if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && type != R_X86_64_64) || all[i].r_addend != 0)
			continue;
		const ElfW(Sym) *symbol = &f->symbols[ELF64_R_SYM(all[i].r_info)];
		const struct function *g = function_of(f->strings + symbol->st_name);
		uintptr_t at = f->info->dlpi_addr + all[i].r_offset;
		if (!g || g->pass != f->walk->pass || !g->next || !g->hook || !may_write(f, at, &read_only))
			continue;
		if (g->probe == by_zeros && is_in(f, (uintptr_t)cmem_next.malloc))
			continue; // what the allocator maps it hands out as blocks, which are counted
		void **slot = (void **)at;
		uintptr_t is = (uintptr_t)__atomic_load_n(slot, __ATOMIC_RELAXED);
		if (f->walk->on && type == R_X86_64_JUMP_SLOT && symbol->st_shndx == SHN_UNDEF && is_in(f, is))
			resolve(g, slot); // it has a stub of the file, by which the dynamic linker is called
		if (f->walk->on)
			f->walk->changed += change(slot, g->next, g->hook, read_only);
		else if (__atomic_load_n(slot, __ATOMIC_RELAXED) == g->hook)
			f->walk->left += !change(slot, g->hook, g->next, read_only);
	}
}

static int each_file(struct dl_phdr_info *info, size_t size, void *walk) {
	struct file f = {.info = info, .walk = walk};
	const ElfW(Dyn) *d = 0;
	const ElfW(Rela) *slots = 0, *words = 0;
	size_t slots_n = 0, words_n = 0;
	if (f.walk->on && info->dlpi_adds != f.walk->files)
		return 1;
	cmem_extent(info, &f.from, &f.to);
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	// Not this library, the dynamic linker where it is apart from the C library, nor the part of the kernel.
	if (!d || is_in(&f, (uintptr_t)each_file) || (is_glibc && is_in(&f, getauxval(AT_BASE))) ||
		getauxval(AT_SYSINFO_EHDR) == f.from)
		return 0;
	for (; d->d_tag != DT_NULL; d++) {
		// The dynamic linker of glibc has made the addresses absolute.
		void *at = (void *)(d->d_un.d_ptr + (is_glibc ? 0 : info->dlpi_addr));
		switch (d->d_tag) {
		case DT_SYMTAB: f.symbols = at; break;
		case DT_STRTAB: f.strings = at; break;
		case DT_JMPREL: slots = at; break;
		case DT_PLTRELSZ: slots_n = d->d_un.d_val / sizeof *slots; break;
		case DT_RELA: words = at; break;
		case DT_RELASZ: words_n = d->d_un.d_val / sizeof *words; break;
		}
	}
	if (!f.symbols || !f.strings)
		return 0;
	if (slots)
		change_slots(&f, slots, slots_n);
	if (words)
		change_slots(&f, words, words_n);
	return 0;
}

// count_files says how many files have been loaded so far.
static int count_files(struct dl_phdr_info *info, size_t size, void *n) {
	*(unsigned long long *)n = info->dlpi_adds;
	return 1;
}

// change_on changes all slots of files that are loaded, and returns how many files have been. If another one comes meanwhile, some
// are left for the next time.
static unsigned long long change_on(void) {
	struct walk_slots w = {.on = 1};
	dl_iterate_phdr(count_files, &w.files);
	// With glibc this waits for the lock of those that load files. musl would count it as a file.
	void *libc = is_glibc ? dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD) : 0;
	if (libc)
		dlclose(libc);
	int all = 1;
	for (w.pass = free_pass; all && w.pass < passes; w.pass++)
		all = dl_iterate_phdr(each_file, &w) == 0;
	__atomic_fetch_add(&command->slots, w.changed, __ATOMIC_RELAXED);
	return all ? w.files : 0;
}

static void change_off(void) {
	struct walk_slots w = {0};
	for (int p = passes - 1; p >= 0; p--) {
		w.pass = p;
		dl_iterate_phdr(each_file, &w);
	}
	cmem_sample_enable(0);
	__atomic_store_n(&command->slots_left, w.left, __ATOMIC_RELAXED);
}

static void set_state(uint32_t to) {
	__atomic_store_n(&command->state, to, __ATOMIC_RELEASE);
	syscall(SYS_futex, &command->state, 1 /* FUTEX_WAKE */, INT32_MAX, 0, 0, 0);
}

static double seconds(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

// ask_allocator notes what is in use. glibc holds the lock of each arena while it looks through the free blocks there, so that
// takes one part of 400 of the time, and is done every two seconds at most. It returns when to call it again.
static double ask_allocator(uint64_t *to) {
	int header;
	double began = seconds();
	int64_t in_use = cmem_allocator_in_use(&header); // -1: it does not say
	__atomic_store_n(to, in_use > 0 ? in_use : 0, __ATOMIC_RELAXED);
	double took = seconds() - began;
	return began + (took > 0.005 ? 400 * took : 2);
}

// wait_for_end returns when the command wants it, or has not been heard for four seconds. again is when to ask the allocator.
static void wait_for_end(double again) {
	enum { most = 4 };
	struct timespec half = {0, 500000000};
	double began = seconds();
	uint32_t heard = __atomic_load_n(&command->beat, __ATOMIC_RELAXED);
	unsigned long long files = 0, now_files;
	while (!__atomic_load_n(&command->end, __ATOMIC_ACQUIRE)) {
		syscall(SYS_futex, &command->end, 0 /* FUTEX_WAIT */, 0, &half, 0, 0);
		uint32_t beat = __atomic_load_n(&command->beat, __ATOMIC_RELAXED);
		if (beat != heard) {
			heard = beat;
			began = seconds();
		} else if (seconds() - began > most) {
			return;
		}
		if (seconds() > again)
			again = ask_allocator(&command->later);
		// The first time again: a thread may have been about to fill in a slot, and have written over the change.
		dl_iterate_phdr(count_files, &now_files);
		if (now_files != files)
			files = change_on();
	}
}

// The allocator of the process is what it finds first, unless that is in the program: then it is one of its own, or a
// stub of a program that has taken the address of malloc.
static void find_behind(void) {
	Dl_info of, own;
	void *m = dlsym(RTLD_DEFAULT, "malloc");
	void *program = (void *)getauxval(AT_PHDR);
	int in_program = m && program && dladdr(m, &of) && dladdr(program, &own) && of.dli_fbase == own.dli_fbase;
	// With musl, what is loaded last has nothing next to it.
	void *behind = is_glibc ? RTLD_NEXT : dlopen("libc.so", RTLD_LAZY | RTLD_NOLOAD);
	cmem_behind = in_program ? behind : RTLD_DEFAULT;
}

static void (*begin)(void);

static void *run(void *unused) {
	find_behind();
	begin();
	prctl(PR_SET_NAME, "cheap record");
	if (!command) { // the file cannot be mapped: the command waits in vain, and says so
		cmem_memory_end();
		return 0;
	}
	cmem_unseen_start();
	double again = ask_allocator(&command->before);
	find_functions();
	for (int i = 0; i < 100 && change_on() == 0; i++)
		;
	set_state(attached_now);
	wait_for_end(again);
	ask_allocator(&command->later);
	change_off();
	cmem_memory_end();
	set_state(attached_ended);
	return 0;
}

// is_wanted reports whether the command still waits.
static int is_wanted(void) {
	uint32_t wanted = 1;
	struct header *h = MAP_FAILED;
	if (is_own(&attach.shared))
		h = cmem_system_mmap(0, sizeof *h, PROT_READ | PROT_WRITE, MAP_SHARED, attach.shared.fd, 0);
	if (h == MAP_FAILED)
		return 0;
	int ours = __atomic_compare_exchange_n(&h->attached.wanted, &wanted, 2, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	cmem_system_munmap(h, sizeof *h);
	return ours;
}

int cmem_attach_load(void (*rest)(void)) {
	if (!attach.late)
		return 0;
	close_own(&attach.image);
	pthread_attr_t attr;
	pthread_t t;
	sigset_t all, old;
	void *(*task)(void *) = run, *self = 0;
	if (is_wanted()) {
		cmem_late = 1;
		begin = rest;
	} else { // it is too late: dlclose unmaps the library, in a thread with no code of it, when dlopen is done
		close_own(&attach.shared);
		if (!own_handle(&self))
			return 1;
		*(void **)&task = (void *)dlclose;
	}
	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 256 << 10);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int r = pthread_create(&t, &attr, task, self);
	pthread_sigmask(SIG_SETMASK, &old, 0);
	pthread_attr_destroy(&attr);
	if (r != 0)
		close_own(&attach.shared);
	return 1;
}

struct header *cmem_attach_open(void) {
	struct header *h = is_own(&attach.shared) ? cmem_shared_map(attach.shared.fd) : 0;
	close_own(&attach.shared);
	if (h)
		command = &h->attached;
	cmem_set_rate(attach.rate);
	return h;
}
#else
int cmem_attach_load(void (*rest)(void)) { return 0; }
struct header *cmem_attach_open(void) {
	return 0;
}
#endif
