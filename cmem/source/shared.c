//go:build ignore
// A part of the library that cheap record preloads, and of no program.

// The file that the library and the command cheap have mapped. It has, in this order,
//
//   - a header,
//   - the variables of this library that the command reads: the file is mapped over them,
//   - what cmem_map hands out: records of threads, stacks, sampled blocks, the ring of events.
//
// So the command reads them while the program runs, and after it has ended, in whatever way: no
// function need run at the end. All pointers are addresses of this process; the header says where
// the file lies. The file is as long as all that the program could ever ask for. It has memory only
// where fallocate has asked for it, so a store never fails because a disk is full. Only there it
// can be written, so mlockall of the program does not ask for all of it.
//
// The child of a fork goes on with variables of its own. A program that is started by exec does not
// find the library in its environment.

#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { page = 64 << 10 }; // or a part of that

// The variables with in_shared. The linker defines where they begin and end. The first and the last
// of their pages have nothing else, because this variable, in the last file, is a page itself.
in_shared __attribute__((aligned(page), used)) static char last_page[page] = {1};
extern char variables[] __asm__("__start_cmem_shared") hidden, variables_end[] __asm__("__stop_cmem_shared") hidden;

struct module {
	struct module *next;
	uint64_t base, from, to; // what is to be added to its addresses; where it is mapped
	uint64_t closed;         // how many libraries had been unloaded when it was found
	uint64_t initial;        // it is mapped since the program began
	char name[];             // of the file; that of the program is ""
};

struct header {
	char magic[8];
	uint64_t version, started;
	uint64_t base;                                 // where the file is mapped
	uint64_t variables, variables_n, variables_at; // their address, length and place in the file
	uint64_t used;                                 // how much of the file
	uint64_t modules, program;                     // a struct module; the base of the program
	uint64_t pid;
	struct fields fields;
	char off[256];
};

static struct header *header;
static char *file_name;
static uint64_t file_size;
static char at_start[4 * page]; // the variables as they were when the program began
static size_t variables_size;

static struct header *in_file(void) { return __atomic_load_n(&header, __ATOMIC_ACQUIRE); }

// reserve has the system find memory for a part of the file, which is mapped at h. The file is
// opened each time: the program may close all files that it does not know.
static int reserve(struct header *h, uint64_t at, size_t n) {
	int fd = syscall(SYS_openat, AT_FDCWD, file_name, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return 0;
	int r = syscall(SYS_fallocate, fd, 0, at, n);
	syscall(SYS_close, fd);
	return r == 0 && mprotect((char *)h + at, n, PROT_READ | PROT_WRITE) == 0;
}

void *cmem_map(size_t n) {
	struct header *h = in_file();
	if (!h) {
		void *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		return p == MAP_FAILED ? 0 : p;
	}
	n = (n + page - 1) & ~(size_t)(page - 1);
	uint64_t at = __atomic_load_n(&h->used, __ATOMIC_RELAXED);
	do
		if (n > file_size - at)
			return 0;
	while (!__atomic_compare_exchange_n(&h->used, &at, at + n, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return reserve(h, at, n) ? (char *)h + at : 0;
}

void cmem_unmap(void *p, size_t n) {
	if (in_file())
		madvise(p, n, MADV_REMOVE);
	else
		munmap(p, n);
}

void cmem_shared_child(void) {
	if (!in_file())
		return;
	__atomic_store_n(&header, 0, __ATOMIC_RELEASE);
	if (mmap(variables, variables_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		abort(); // it would write what the parent counts
	memcpy(variables, at_start, variables_size);
	for (size_t i = 0; i < sizeof cmem_filter; i++)
		if (cmem_filter[i] != 255)
			cmem_filter[i] = 0;
}

static char *names;
static size_t names_left;

// add_module writes a module into the file.
static void add_module(uint64_t base, uintptr_t from, uintptr_t to, const char *name, int initial) {
	size_t n = (sizeof(struct module) + strlen(name) + 1 + 15) & ~(size_t)15;
	if (n > names_left) {
		if (n > page || !(names = cmem_map(page)))
			return;
		names_left = page;
	}
	struct module *m = (struct module *)names;
	names += n;
	names_left -= n;
	m->next = (struct module *)header->modules;
	m->base = base;
	m->from = from;
	m->to = to;
	m->closed = __atomic_load_n(&cmem_closed, __ATOMIC_RELAXED);
	m->initial = initial;
	strcpy(m->name, name);
	__atomic_store_n(&header->modules, (uint64_t)m, __ATOMIC_RELEASE);
}

static int initial_module(struct dl_phdr_info *info, size_t size, void *first) {
	uintptr_t from = UINTPTR_MAX, to = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD)
			continue;
		if (info->dlpi_addr + p->p_vaddr < from)
			from = info->dlpi_addr + p->p_vaddr;
		if (info->dlpi_addr + p->p_vaddr + p->p_memsz > to)
			to = info->dlpi_addr + p->p_vaddr + p->p_memsz;
	}
	if (*(int *)first)
		header->program = info->dlpi_addr;
	add_module(info->dlpi_addr, from, to, *(int *)first ? "" : info->dlpi_name, 1);
	*(int *)first = 0;
	return 0;
}

// What _dl_find_object of glibc returns: it takes no lock.
struct found {
	unsigned long long flags;
	void *from, *to;
	struct link_map *map;
	void *frames;
	unsigned long long rest[8];
};
static int (*find_object)(void *, struct found *);

void cmem_shared_stack(const struct cmem_stack *s) {
	struct found f;
	if (!in_file() || !find_object)
		return;
	for (uint32_t i = 0; i < s->c; i++) {
		uintptr_t pc = s->pcs[i] - 1;
		struct module *m = (struct module *)header->modules;
		while (m && !(pc >= m->from && pc < m->to && (m->initial || m->closed == s->closed)))
			m = m->next;
		if (!m && find_object((void *)pc, &f) == 0 && f.map && f.map->l_name)
			add_module(f.map->l_addr, (uintptr_t)f.from, (uintptr_t)f.to, f.map->l_name, 0);
	}
}

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
	static const char preload[] = "LD_PRELOAD=", ours[] = "CHEAPCMEM_RECORD";
	static char nothing[8];
	char **to = environ, **e = environ;
	if (!environ)
		return;
	for (; *e; e++) {
		if (strncmp(*e, ours, sizeof ours - 1) == 0)
			continue;
		if (strncmp(*e, preload, sizeof preload - 1) == 0) {
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
	char **copy = mmap(0, (kept + 1) * sizeof *copy, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy != MAP_FAILED)
		environ = memcpy(copy, environ, kept * sizeof *copy); // a 0 is behind them
}

// open_file maps the file that CHEAPCMEM_RECORD names, and copies the variables into it. It runs
// before a thread has a record.
__attribute__((constructor(101))) static void open_file(void) {
	static char room[4096];
	struct stat st;
	struct header *h;
	const char *name = getenv("CHEAPCMEM_RECORD");
	int fd;
	if (!name || strlen(name) >= sizeof room || (fd = open(name, O_RDWR | O_CLOEXEC)) < 0)
		return;
	file_name = strcpy(room, name);
	variables_size = variables_end - variables;
	if (fstat(fd, &st) != 0 || variables_size > sizeof at_start || (file_size = st.st_size) < variables_size + page ||
		(h = mmap(0, file_size, PROT_NONE, MAP_SHARED, fd, 0)) == MAP_FAILED) {
		close(fd);
		return;
	}
	if (!reserve(h, 0, page + variables_size)) {
		munmap(h, file_size);
		close(fd);
		return;
	}
	madvise(h, file_size, MADV_DONTDUMP);
	memcpy(at_start, variables, variables_size);
	memcpy((char *)h + page, variables, variables_size);
	void *p = mmap(variables, variables_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, page);
	close(fd);
	if (p == MAP_FAILED)
		abort(); // the variables are gone
	h->base = (uintptr_t)h;
	h->variables = (uintptr_t)variables;
	h->variables_n = variables_size;
	h->variables_at = page;
	h->used = page + variables_size;
	h->pid = getpid();
	cmem_thread_fields(&h->fields);
	cmem_table_fields(&h->fields);
	h->fields.trace = (uintptr_t)&cmem_tracing;
	__atomic_store_n(&header, h, __ATOMIC_RELEASE);
}

// begin runs behind the constructors of the other files.
//
// CHEAPCMEM_RECORD_GO is set for Go programs, and says where the code of Go functions and
// runtime.cgocall lie, CHEAPCMEM_RECORD_RATE is the rate, and CHEAPCMEM_RECORD_TRACE, if there is
// to be a trace, lists the functions whose blocks are marked. All numbers are hexadecimal.
__attribute__((constructor(103))) static void begin(void) {
	const char *go = getenv("CHEAPCMEM_RECORD_GO");
	const char *rate = getenv("CHEAPCMEM_RECORD_RATE"), *trace = getenv("CHEAPCMEM_RECORD_TRACE");
	int first = 1;
	if (!header)
		return;
	dl_iterate_phdr(initial_module, &first);
	*(void **)&find_object = dlsym(RTLD_DEFAULT, "_dl_find_object");
	if (rate)
		cmem_set_rate(number(&rate));
	if (go && *go) {
		uintptr_t base = header->program, text = base + number(&go), etext = base + number(&go), cgocall = base + number(&go);
		cmem_learn(cgocall, base + number(&go));
		cmem_start(text, etext);
	}
	if (trace) {
		struct module *m = (struct module *)header->modules;
		while (m && !((uintptr_t)begin >= m->from && (uintptr_t)begin < m->to))
			m = m->next;
		while (*trace && m) {
			uintptr_t from = header->program + number(&trace);
			cmem_trace_mark(from, header->program + number(&trace), m->from, m->to);
		}
	}
	strncpy(header->off, cmem_off(), sizeof header->off - 1);
	memcpy(header->magic, "cheapmem", 8);
	header->version = 1;
	hide();
	if (trace && *cmem_off() == 0 && !cmem_trace_begin(cmem_trace_events, cmem_trace_patience))
		strcpy(header->off, "there is no room for the file that cheap and the program share");
	__atomic_store_n(&header->started, 1, __ATOMIC_RELEASE);
}
