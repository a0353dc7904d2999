//go:build cgo && linux

#define _GNU_SOURCE
#include "arenas.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int cheap_arenas_max;

#ifdef __GLIBC__
#include <malloc.h>

// The functions run before main and before other constructors have allocated much. They do not
// allocate by themselves.

// number_in sets n to the i-th number of a small file, and returns 0 if there is none. "max" is none.
static int number_in(const char *name, int i, long *n) {
	char text[128], *at = text, *end;
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t size = read(fd, text, sizeof text - 1);
	close(fd);
	if (size <= 0)
		return 0;
	text[size] = 0;
	for (;; at = end) {
		*n = strtol(at, &end, 10);
		if (end == at)
			return 0;
		if (i-- == 0)
			return 1;
	}
}

// quota returns how many processors the cgroup at the root of the file system may use, rounded up, or
// 0 if there is no bound. In a container that is the cgroup of the container.
static long quota(void) {
	long time, period;
	if (!(number_in("/sys/fs/cgroup/cpu.max", 0, &time) && number_in("/sys/fs/cgroup/cpu.max", 1, &period)) &&
		!(number_in("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", 0, &time) &&
			number_in("/sys/fs/cgroup/cpu/cpu.cfs_period_us", 0, &period)))
		return 0;
	return time > 0 && period > 0 ? (time + period - 1) / period : 0;
}

// processors returns what GOMAXPROCS will be, nearly.
static long processors(void) {
	const char *text = getenv("GOMAXPROCS");
	long n = text ? strtol(text, NULL, 10) : 0;
	if (n > 0)
		return n;
	cpu_set_t set;
	n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : sysconf(_SC_NPROCESSORS_ONLN);
	long most = quota();
	return most > 0 && most < n ? most : n;
}

__attribute__((constructor)) static void bound(void) {
	const char *max = getenv("MALLOC_ARENA_MAX"), *tunables = getenv("GLIBC_TUNABLES");
	if (max != NULL || (tunables != NULL && strstr(tunables, "glibc.malloc.arena_max") != NULL)) {
		cheap_arenas_max = 1; // some number of the program's user
		return;
	}
	long n = processors();
	if (n < 2)
		n = 2;
	if (n < 1 << 16 && mallopt(M_ARENA_MAX, n) == 1)
		cheap_arenas_max = n;
}
#endif
