//go:build ignore
// A part of the library that cheap record preloads, and of no program.

// The file that a recorded program and the command cheap record both have mapped. The command reads
// the counts and stacks there, while the program runs and after it has ended, in whatever way: nothing
// need run at the end of the program.
//
//	0       struct header    where the rest lies
//	page    variables        those of this library with in_shared: the file is mapped over them
//	        memory           what cmem_map hands out: records of threads, stacks, sampled blocks, the ring
//	                         of events, modules
//
// All pointers are addresses of the program; header.base says where it has mapped the file. The file is
// as long as the most that the program could ever need, and sparse. cmem_map has the system allocate a part
// (fallocate) before it hands the part out, so no store fails because a disk is full. Only these parts
// can be written, so mlockall of the program does not need memory for the whole length.
//
// The child of a fork goes on with variables of its own. A program that is started by exec does not
// find the library in its environment, or, with cheap record -children, makes a file of its own.

#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define cmem_shared_size ((uint64_t)64 << 30) // Size of package shared of the command

enum { page = 64 << 10 }; // a multiple of the size of a page on every system

// The variables with in_shared. The linker defines where they begin and end. The first and the last
// of their pages have nothing else, because this variable, in the last file, is a page itself.
in_shared __attribute__((aligned(page), used)) static char last_page[page] = {1};
extern char variables[] __asm__("__start_cmem_shared") hidden, variables_end[] __asm__("__stop_cmem_shared") hidden;

int cmem_late;
void *cmem_behind = RTLD_NEXT;

static struct header *header;
static char *file_name;
static uint64_t file_size;
static char at_start[4 * page]; // the variables as they were when the program began
static size_t variables_size;

static struct header *in_file(void) { return __atomic_load_n(&header, __ATOMIC_ACQUIRE); }

// reserve has the system find memory for a part of the file, which is mapped at h. The file is
// opened each time: the program may close all files that it does not know.
static int reserve(struct header *h, uint64_t at, size_t n) {
	if (!file_name)
		return mprotect((char *)h + at, n, PROT_READ | PROT_WRITE) == 0;
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
		void *p = cmem_system_mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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
		cmem_system_munmap(p, n);
}

struct header *cmem_shared_open(const char *name) {
	static char room[4096];
	int fd;
	if (strlen(name) >= sizeof room || (fd = open(name, O_RDWR | O_CLOEXEC)) < 0)
		return 0;
	file_name = strcpy(room, name);
	struct header *h = cmem_shared_map(fd);
	close(fd);
	return h;
}

struct header *cmem_shared_make(const char *folder) {
	static char room[4096];
	struct rlimit most;
	int fd = -1;
	if (strlen(folder) > sizeof room - 64 || getrlimit(RLIMIT_FSIZE, &most) != 0 || most.rlim_cur < cmem_shared_size)
		return 0;
	for (int n = 0; n < 100 && fd < 0; n++) { // by exec a process is several programs
		sprintf(room, "%s/%d-%d", folder, (int)getpid(), n);
		fd = open(room, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	}
	if (fd < 0)
		return 0;
	file_name = room;
	struct header *h = ftruncate(fd, cmem_shared_size) == 0 ? cmem_shared_map(fd) : 0;
	close(fd);
	return h;
}

void cmem_shared_wait(struct header *h) {
	struct timespec moment = {0, 1000000};
	for (int i = 0; i < 1000 && __atomic_load_n(&h->ready, __ATOMIC_ACQUIRE) == 0; i++)
		nanosleep(&moment, 0);
}

struct header *cmem_shared_map(int fd) {
	struct stat st;
	struct header *h;
	variables_size = variables_end - variables;
	if (fstat(fd, &st) != 0 || variables_size > sizeof at_start || (file_size = st.st_size) < variables_size + page ||
		(h = cmem_system_mmap(0, file_size, PROT_NONE, MAP_SHARED, fd, 0)) == MAP_FAILED)
		return 0;
	if (!reserve(h, 0, page + variables_size)) {
		cmem_system_munmap(h, file_size);
		return 0;
	}
	madvise(h, file_size, MADV_DONTDUMP);
	memcpy(at_start, variables, variables_size);
	memcpy((char *)h + page, variables, variables_size);
	void *p = cmem_system_mmap(variables, variables_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, page);
	if (p == MAP_FAILED) {
		unsigned char resident[sizeof at_start / 4096];
		if (!cmem_late || mincore(variables, variables_size, resident) != 0)
			abort(); // the variables are gone
		cmem_system_munmap(h, file_size);
		return 0;
	}
	h->base = (uintptr_t)h;
	h->variables = (uintptr_t)variables;
	h->variables_n = variables_size;
	h->variables_at = page;
	h->used = page + variables_size;
	h->pid = getpid();
	__atomic_store_n(&header, h, __ATOMIC_RELEASE);
	return h;
}

int cmem_shared_child(void) {
	if (!in_file())
		return 0;
	__atomic_store_n(&header, 0, __ATOMIC_RELEASE);
	if (cmem_system_mmap(variables, variables_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			0) == MAP_FAILED)
		abort(); // it would write what the parent counts
	memcpy(variables, at_start, variables_size);
	return 1;
}

int cmem_shared_go(uintptr_t code[4], int *labels) {
	struct header *h = in_file();
	if (!h || __atomic_load_n(&h->go[1], __ATOMIC_ACQUIRE) == 0)
		return 0;
	for (int i = 0; i < 4; i++)
		code[i] = h->program + h->go[i];
	*labels = h->labels;
	return 1;
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

void cmem_shared_stack(const struct cmem_stack *s) {
	struct object f;
	if (!in_file() || !cmem_find_object)
		return;
	for (uint32_t i = 0; i < s->c; i++) {
		uintptr_t pc = s->pcs[i] - 1;
		struct module *m = (struct module *)header->modules;
		while (m && !(pc >= m->from && pc < m->to && (m->initial || m->closed == s->closed)))
			m = m->next;
		if (!m && cmem_find_object((void *)pc, &f) == 0 && f.map && f.map->l_name)
			add_module(f.map->l_addr, (uintptr_t)f.from, (uintptr_t)f.to, f.map->l_name, 0);
	}
}

// initial adds a file that is mapped when the program begins. The first is the program.
static int initial(struct dl_phdr_info *info, size_t size, void *first) {
	uintptr_t from, to;
	cmem_extent(info, &from, &to);
	if (*(int *)first)
		header->program = info->dlpi_addr;
	add_module(info->dlpi_addr, from, to, *(int *)first ? "" : info->dlpi_name, 1);
	*(int *)first = 0;
	return 0;
}

void cmem_shared_modules(void) {
	int first = 1;
	dl_iterate_phdr(initial, &first);
}
