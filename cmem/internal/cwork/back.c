//go:build cgo && linux

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
extern void *cworkGo(int, size_t);
__attribute__((noinline)) void *cwork_back(int depth, size_t n) {
	void *volatile p = cworkGo(depth, n);
	return p;
}

// cwork_back_thread does so in threads of C, each of which calls Go twice.
struct back {
	int depth;
	size_t n;
	void *p;
};
static void *back_thread(void *arg) {
	struct back *b = arg;
	prctl(PR_SET_NAME, "back 12");
	free(cworkGo(1, 10));
	void *volatile kept = malloc(b->n + 1000);
	b->p = cwork_back(b->depth, b->n);
	return 0;
}
void *cwork_back_thread(int depth, size_t n) {
	struct back b = {depth, n, 0};
	pthread_t t;
	if (pthread_create(&t, 0, back_thread, &b) == 0)
		pthread_join(t, 0);
	return b.p;
}

// cwork_calls calls a function of Go that may panic, which leaves the frames of C behind.
extern void cworkCall(size_t);
__attribute__((noinline)) void cwork_calls(size_t h) {
	volatile size_t keep = h;
	cworkCall(h);
	h = keep;
}

extern void cworkMove(void);
__attribute__((noinline)) void *cwork_moved(size_t n) {
	cworkMove();
	void *volatile p = malloc(n);
	return p;
}
