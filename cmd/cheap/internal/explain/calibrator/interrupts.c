//go:build cgo

#ifdef __linux__
#define _GNU_SOURCE
#endif

#include "interrupts.h"

#ifdef __linux__

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

static int timer = -1; // of the kernel

// The system calls are made without the C library: older ones have these functions in librt.
void calibrator_interrupt(long hertz) {
	struct sigevent event;
	struct itimerspec every;
	memset(&event, 0, sizeof event);
	memset(&every, 0, sizeof every);
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = SIGPROF;
	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	every.it_interval.tv_nsec = every.it_value.tv_nsec = 1000000000 / hertz;
	if (syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer) != 0) {
		timer = -1; // it is not allowed: the profiler has its own
	} else if (syscall(SYS_timer_settime, timer, 0, &every, NULL) != 0) {
		calibrator_end();
	}
}

void calibrator_end(void) {
	if (timer >= 0) syscall(SYS_timer_delete, timer);
	timer = -1;
}

#else

void calibrator_interrupt(long hertz) { (void)hertz; }
void calibrator_end(void) {}

#endif
