//go:build cgo && unix

#include "threads.h"

// xmalloc

struct batch {
	uint32_t from, count;
};

// A queue is a ring that is large enough for all batches.
struct queue {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct batch *ring;
	int size, first, count, producers;
};

static void queue_init(struct queue *q, int size, int producers) {
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->more, NULL);
	q->ring = array(size, sizeof *q->ring);
	q->size = size;
	q->first = q->count = 0;
	q->producers = producers;
}

static void queue_destroy(struct queue *q) {
	free(q->ring);
	pthread_cond_destroy(&q->more);
	pthread_mutex_destroy(&q->lock);
}

static void queue_put(struct queue *q, struct batch b) {
	pthread_mutex_lock(&q->lock);
	q->ring[(q->first + q->count++) % q->size] = b;
	pthread_cond_signal(&q->more);
	pthread_mutex_unlock(&q->lock);
}

// queue_get returns 0 when all producers have left, and nothing remains.
static int queue_get(struct queue *q, struct batch *b) {
	pthread_mutex_lock(&q->lock);
	while (q->count == 0 && q->producers > 0) {
		pthread_cond_wait(&q->more, &q->lock);
	}
	int got = q->count > 0;
	if (got) {
		*b = q->ring[q->first];
		q->first = (q->first + 1) % q->size;
		q->count--;
	}
	pthread_mutex_unlock(&q->lock);
	return got;
}

static void queue_leave(struct queue *q) {
	pthread_mutex_lock(&q->lock);
	q->producers--;
	pthread_cond_broadcast(&q->more);
	pthread_mutex_unlock(&q->lock);
}

struct queues {
	struct queue full, empty;
};

static uint32_t xmalloc_size(uint32_t x) {
	return (xmalloc_least + (x & 1) * xmalloc_least / 2) << ((x >> 8) % xmalloc_doublings);
}

static void *xmalloc_thread(void *arg) {
	struct thread *self = arg;
	const struct run *run = self->run;
	struct queues *q = run->shared;
	struct workload_tally t = {0};
	struct batch b;
	if (self->number >= run->threads) {
		while (queue_get(&q->full, &b)) {
			workload_table blocks = run->s + b.from;
			for (uint32_t i = 0; i < b.count; i++) {
				take(&t, at(blocks, i));
				free(at(blocks, i));
			}
			queue_put(&q->empty, b);
		}
		self->t = t;
		return NULL;
	}
	workload_random r = new_random(self->number);
	for (uint32_t left = quota(run->n, run->threads, self->number); left > 0;) {
		queue_get(&q->empty, &b);
		b.count = least(xmalloc_batch, left);
		left -= b.count;
		workload_table blocks = run->s + b.from;
		for (uint32_t i = 0; i < b.count; i++) {
			uint32_t x = next(&r);
			uint32_t size = xmalloc_size(x);
			void *block = malloc(size);
			put(&t, block, size, x);
			set(blocks, i, block);
		}
		queue_put(&q->full, b);
	}
	queue_leave(&q->full);
	self->t = t;
	return NULL;
}

struct workload_tally workload_xmalloc(workload_table s, uint32_t n, int threads) {
	struct queues q;
	int batches = xmalloc_queue * threads;
	queue_init(&q.full, batches, threads);
	queue_init(&q.empty, batches, 1); // which never leaves
	for (int i = 0; i < batches; i++) {
		struct batch b = {i * xmalloc_batch, 0};
		queue_put(&q.empty, b);
	}
	struct run run = {s, n, threads, &q};
	struct workload_tally t = parallel(2 * threads, &run, xmalloc_thread);
	queue_destroy(&q.full);
	queue_destroy(&q.empty);
	return t;
}

// cache-scratch

static void *scratch_thread(void *arg) {
	struct thread *self = arg;
	struct workload_tally t = {0};
	void *block = at(self->run->s, self->number);
	take(&t, block);
	free(block);
	for (uint32_t n = quota(self->run->n, self->run->threads, self->number) - 1; n > 0; n--) {
		block = malloc(scratch_size);
		put(&t, block, scratch_size, self->number);
		for (int i = 0; i < scratch_writes; i++) {
			++*(volatile uint64_t *)block;
		}
		t.frees++;
		t.sum += *(volatile uint64_t *)block;
		free(block);
	}
	self->t = t;
	return NULL;
}

struct workload_tally workload_cache_scratch(workload_table s, uint32_t n, int threads) {
	struct workload_tally first = {0};
	if (n < (uint32_t)threads) {
		threads = (int)n;
	}
	for (int i = 0; i < threads; i++) {
		void *block = malloc(scratch_size);
		put(&first, block, scratch_size, i);
		set(s, i, block);
	}
	struct run run = {s, n, threads, NULL};
	struct workload_tally t = parallel(threads, &run, scratch_thread);
	add(&t, &first);
	return t;
}

// mstress

static void *stress_block(workload_random *r, struct workload_tally *t, uint32_t doublings) {
	uint32_t size = (uint32_t)word_bytes << below(r, doublings);
	if (below(r, stress_large) == 0) {
		size *= stress_large_times;
	}
	void *block = malloc(size);
	put(t, block, size, size);
	return block;
}

static void *stress_thread(void *arg) {
	struct thread *self = arg;
	const struct run *run = self->run;
	uintptr_t *transfer = run->shared;
	workload_table s = run->s + self->number * stress_places;
	workload_table kept = s + stress_blocks;
	workload_random r = new_random(self->number);
	struct workload_tally t = {0};
	for (uint32_t left = quota(run->n, run->threads, self->number); left > 0;) {
		uint32_t drops = stress_blocks, keeps = stress_kept;
		while (left > 0 && drops + keeps > 0) {
			left--;
			if (drops > 0 && (keeps == 0 || below(&r, 2) == 0)) {
				set(s, stress_blocks - drops, stress_block(&r, &t, stress_doublings));
				drops--;
			} else {
				set(kept, stress_kept - keeps, stress_block(&r, &t, kept_doublings));
				keeps--;
			}
			uint32_t top = stress_blocks - drops;
			if (below(&r, 100) < stress_drops && top > 0) {
				uint32_t i = below(&r, top);
				void *block = at(s, i);
				if (block != NULL) {
					take(&t, block);
					free(block);
					set(s, i, NULL);
				}
			}
			if (below(&r, 100) < stress_swaps && top > 0) {
				uint32_t i = below(&r, top), j = below(&r, stress_transfer);
				s[i] = __atomic_exchange_n(&transfer[j], s[i], __ATOMIC_ACQ_REL);
			}
		}
		free_all(s, stress_places, &t);
	}
	self->t = t;
	return NULL;
}

struct workload_tally workload_mstress(workload_table s, uint32_t n, int threads) {
	uintptr_t *transfer = array(stress_transfer, sizeof *transfer);
	struct run run = {s, n, threads, transfer};
	struct workload_tally t = parallel(threads, &run, stress_thread);
	free_all(transfer, stress_transfer, &t);
	free(transfer);
	return t;
}
