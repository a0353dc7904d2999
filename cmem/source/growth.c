//go:build ignore

// The eventfd that is written to when the bytes in use have changed by much. A goroutine of Go waits
// on it, and package pace counts the bytes.

#define _GNU_SOURCE
#include "internal.h"

#include <math.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

// All under the lock.
static int event = -1;
static struct stat event_stat;
static int enabled;
static double reported; // the bytes in use when the eventfd was written to last

// least is the smallest change that is reported.
static double least(void) { return reported > 64 << 20 ? reported / 64 : 1 << 20; }

int cmem_growth_due(void) {
	double live, variance;
	if (!enabled)
		return -1;
	cmem_live(cmem_of_malloc, &live, &variance);
	if (fabs(live - reported) < least())
		return -1;
	reported = live;
	return event;
}

// A program may close all files that it does not know, and open one of its own with the same number:
// then nothing is written. It is a system call and not write of the C library, in which a thread can be
// cancelled. It waits for no reader: the file does not block.
void cmem_growth_signal(int fd) {
	uint64_t one = 1;
	struct stat now;
	if (fd >= 0 && fstat(fd, &now) == 0 && now.st_dev == event_stat.st_dev && now.st_ino == event_stat.st_ino)
		syscall(SYS_write, fd, &one, sizeof one);
}

int cmem_growth_open(void) {
	sigset_t old;
	cmem_lock(&old);
	if (event < 0 && (event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) >= 0)
		fstat(event, &event_stat);
	int fd = event;
	cmem_unlock(&old);
	return fd;
}

void cmem_growth_enable(int on) {
	sigset_t old;
	cmem_lock(&old);
	enabled = on;
	cmem_unlock(&old);
}

void cmem_growth_wake(void) { cmem_growth_signal(event); }
