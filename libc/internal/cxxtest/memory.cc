//go:build cgo && cxx

#include <atomic>
#include <cstdlib>
#include <new>

#include "cxxtest.h"

// These take the place of the operators of the C++ library, in the whole program.

static std::atomic<long> blocks;

void *operator new(std::size_t size) {
	void *p = std::malloc(size ? size : 1);
	if (!p) {
		throw std::bad_alloc();
	}
	blocks++;
	return p;
}

void *operator new(std::size_t size, const std::nothrow_t &) noexcept {
	void *p = cxxtest_refuse ? nullptr : std::malloc(size ? size : 1);
	if (p) {
		blocks++;
	}
	return p;
}

void operator delete(void *p) noexcept {
	if (p) {
		blocks--;
		std::free(p);
	}
}

void operator delete(void *p, std::size_t) noexcept { operator delete(p); }

extern "C" {

int cxxtest_refuse;

long cxxtest_blocks() { return blocks; }

} // extern "C"
