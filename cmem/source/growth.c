//go:build ignore

// The timer that is set when the bytes in use have changed by much: it ends at once. A goroutine of Go
// reads its file, and package pace counts the bytes.

#define _GNU_SOURCE
#include "internal.h"

#include <math.h>
#include <sys/timerfd.h>

// All under the lock.
static int event = -1;
static int enabled;
static double reported; // the bytes in use when the timer was set last

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

// A program may close all files that it does not know, and open one of its own with the same number. So this
// is no write: timerfd_settime is an error for a file that is no timer. No thread is cancelled in it, and it
// waits for no reader.
void cmem_growth_signal(int fd) {
	struct itimerspec at_once = {.it_value.tv_nsec = 1};
	if (fd >= 0)
		timerfd_settime(fd, 0, &at_once, 0);
}

int cmem_growth_open(void) {
	sigset_t old;
	cmem_lock(&old);
	if (event < 0)
		event = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
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
