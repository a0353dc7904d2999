//go:build cgo && unix

#include "threads.h"

// larson

struct server {
	workload_table s;
	workload_random r;
	uint32_t left;
	struct workload_tally t;
	pthread_t id, before; // the thread that lives, and the one before it
	int lives;
	pthread_mutex_t lock;
	pthread_cond_t done;
	int over;
	char rest[128]; // between what two threads write
};

static void fill(struct server *v, struct workload_tally *t, uint32_t place) {
	uint32_t size = larson_least + below(&v->r, larson_most - larson_least + 1);
	void *block = malloc(size);
	put(t, block, size, place);
	set(v->s, place, block);
	v->left--;
}

static void *live(void *arg) {
	struct server *v = arg;
	v->id = pthread_self();
	if (v->lives++ > 0) {
		pthread_join(v->before, NULL); // it has created this one, and ends
	}
	for (uint32_t n = least(larson_life, v->left); n > 0; n--) {
		uint32_t place = below(&v->r, larson_places);
		void *block = at(v->s, place);
		if (block != NULL) {
			take(&v->t, block);
			free(block);
		}
		fill(v, &v->t, place);
	}
	if (v->left == 0) {
		pthread_mutex_lock(&v->lock);
		v->over = 1;
		pthread_cond_signal(&v->done);
		pthread_mutex_unlock(&v->lock);
		return NULL;
	}
	v->before = v->id;
	pthread_t next;
	start(&next, live, v);
	return NULL;
}

struct workload_tally workload_larson(workload_table s, uint32_t n, int threads) {
	struct workload_tally sum = {0};
	struct server *servers = array(threads, sizeof *servers);
	for (int i = 0; i < threads; i++) {
		struct server *v = &servers[i];
		v->s = s + i * larson_places;
		v->r = new_random(i);
		v->left = quota(n, threads, i);
		pthread_mutex_init(&v->lock, NULL);
		pthread_cond_init(&v->done, NULL);
		for (uint32_t place = 0; place < larson_places && v->left > 0; place++) {
			fill(v, &v->t, place);
		}
	}
	for (int i = 0; i < threads; i++) {
		pthread_t first;
		start(&first, live, &servers[i]);
	}
	for (int i = 0; i < threads; i++) {
		struct server *v = &servers[i];
		pthread_mutex_lock(&v->lock);
		while (!v->over) {
			pthread_cond_wait(&v->done, &v->lock);
		}
		pthread_mutex_unlock(&v->lock);
		pthread_join(v->id, NULL);
		free_all(v->s, larson_places, &v->t);
		add(&sum, &v->t);
		pthread_cond_destroy(&v->done);
		pthread_mutex_destroy(&v->lock);
	}
	free(servers);
	return sum;
}

// rptest

struct mailbox {
	workload_table batch;
	char rest[128 - sizeof(workload_table)];
};

// mail puts a batch into a mailbox, and frees what was there.
static void mail(struct mailbox *b, workload_table batch, struct workload_tally *t) {
	workload_table old = __atomic_exchange_n(&b->batch, batch, __ATOMIC_ACQ_REL);
	if (old == NULL) {
		return;
	}
	for (int i = 0; i < rp_batch; i++) {
		take(t, at(old, i));
		free(at(old, i));
	}
	t->frees++;
	free(old);
}

static void *rp_block(workload_random *r, struct workload_tally *t) {
	uint32_t x = next(r), y = next(r);
	x = least(x, y);
	uint32_t size = rp_least + (uint32_t)(((uint64_t)x * (rp_most - rp_least)) >> 32);
	void *block = malloc(size);
	put(t, block, size, x);
	return block;
}

static void *rp_thread(void *arg) {
	struct thread *self = arg;
	const struct run *run = self->run;
	struct mailbox *boxes = run->shared;
	workload_table s = run->s + self->number * rp_places;
	workload_random r = new_random(self->number);
	struct workload_tally t = {0};
	uint32_t left = quota(run->n, run->threads, self->number);
	for (uint32_t loop = 0; left > 0; loop++) {
		for (uint32_t k = least(rp_loop, left); k > 0; k--) {
			uint32_t i = below(&r, rp_places);
			void *block = at(s, i);
			if (block != NULL) {
				take(&t, block);
				free(block);
			}
			set(s, i, rp_block(&r, &t));
			left--;
		}
		if (loop % 2 == 1 && left >= 1 + rp_batch) {
			workload_table batch = malloc(rp_batch_bytes);
			put(&t, batch, rp_batch_bytes, 0);
			for (int i = 0; i < rp_batch; i++) {
				set(batch, i, rp_block(&r, &t));
			}
			left -= 1 + rp_batch;
			mail(&boxes[(self->number + 1) % run->threads], batch, &t);
			mail(&boxes[self->number], NULL, &t);
		}
	}
	free_all(s, rp_places, &t);
	self->t = t;
	return NULL;
}

struct workload_tally workload_rptest(workload_table s, uint32_t n, int threads) {
	struct mailbox *boxes = array(threads, sizeof *boxes);
	struct run run = {s, n, threads, boxes};
	struct workload_tally t = parallel(threads, &run, rp_thread);
	for (int i = 0; i < threads; i++) {
		mail(&boxes[i], NULL, &t);
	}
	free(boxes);
	return t;
}
