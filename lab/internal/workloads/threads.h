// What the workloads of several threads share.
#include <pthread.h>

#include "native.h"

static inline uint32_t quota(uint32_t n, int threads, int thread) {
	return n / threads + (thread == 0 ? n % threads : 0);
}

static inline void *needed(void *block) {
	if (block == NULL) {
		fail("there is no memory for the threads");
	}
	return block;
}

// What is not of the workload is allocated once for a run, from the same malloc.
static inline void *array(int count, size_t size) {
	if (count < 1) {
		fail("there is nothing to run");
	}
	return needed(calloc((size_t)count, size));
}

static inline void start(pthread_t *id, void *(*run)(void *), void *arg) {
	if (pthread_create(id, NULL, run, arg) != 0) {
		fail("no thread can be created");
	}
}

static inline void add(struct workload_tally *t, const struct workload_tally *u) {
	t->blocks += u->blocks;
	t->frees += u->frees;
	t->bytes += u->bytes;
	t->sum += u->sum;
	t->asked += u->asked;
}

// A run is what all threads share, a thread what each has.
struct run {
	workload_table s;
	uint32_t n;
	int threads;
	void *shared;
};

struct thread {
	const struct run *run;
	int number;
	pthread_t id;
	struct workload_tally t;
};

static inline struct workload_tally parallel(int threads, const struct run *run, void *(*body)(void *)) {
	struct workload_tally sum = {0};
	struct thread *all = array(threads, sizeof *all);
	for (int i = 0; i < threads; i++) {
		all[i].run = run;
		all[i].number = i;
		start(&all[i].id, body, &all[i]);
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(all[i].id, NULL);
		add(&sum, &all[i].t);
	}
	free(all);
	return sum;
}
