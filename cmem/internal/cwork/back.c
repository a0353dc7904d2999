//go:build cgo && linux

#include <stddef.h>
#include <stdlib.h>
extern void *cworkGo(int, size_t);
__attribute__((noinline)) void *cwork_back(int depth, size_t n) {
	void *volatile p = cworkGo(depth, n);
	return p;
}

extern void cworkMove(void);
__attribute__((noinline)) void *cwork_moved(size_t n) {
	cworkMove();
	void *volatile p = malloc(n);
	return p;
}
