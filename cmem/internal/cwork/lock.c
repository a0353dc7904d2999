//go:build cgo && linux

// A thread that must not be held up by one of lower priority.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

static int first_cpu(void) {
	cpu_set_t all;
	sched_getaffinity(0, sizeof all, &all);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &all))
			return i;
	return 0;
}
static void on_cpu(int policy, int priority, int *refused) {
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET(first_cpu(), &one);
	struct sched_param p = {priority};
	if (pthread_setaffinity_np(pthread_self(), sizeof one, &one) != 0 || pthread_setschedparam(pthread_self(), policy, &p) != 0)
		*refused = 1;
}

static volatile int high_done, refused;
static void *low(void *arg) {
	on_cpu(SCHED_IDLE, 0, (int *)&refused);
	while (!high_done) {
		void *volatile p = malloc(500);
		free(p);
	}
	return 0;
}
static void *high(void *times) {
	struct rusage r;
	on_cpu(SCHED_FIFO, 1, (int *)&refused);
	for (int i = 0; i < *(int *)times && !refused; i++) {
		void *volatile p = malloc(500);
		free(p);
		usleep(200);
	}
	high_done = 1;
	getrusage(RUSAGE_THREAD, &r);
	*(int *)times = (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000 + (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1000;
	return 0;
}

// cwork_priority has a real-time thread and one of the lowest priority allocate on one processor.
// It returns how many milliseconds of processor time the first has taken for so many blocks, or -1
// if the system refuses such threads.
int cwork_priority(int times) {
	pthread_t a, b;
	high_done = refused = 0;
	pthread_create(&a, 0, low, 0);
	pthread_create(&b, 0, high, &times);
	pthread_join(b, 0);
	pthread_join(a, 0);
	return refused ? -1 : times;
}
