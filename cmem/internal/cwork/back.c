//go:build cgo && linux

#include <stddef.h>
extern void *cworkGo(int, size_t);
__attribute__((noinline)) void *cwork_back(int depth, size_t n) {
	void *volatile p = cworkGo(depth, n);
	return p;
}
