// Operators new and delete whose blocks have a mark in front, so that a block which goes to another
// operator delete, or comes from another operator new, ends the program.

#include "cxxtest.h"

#include <cstdint>
#include <cstdlib>
#include <new>

long cxxtest_news, cxxtest_deletes;

static const uint64_t mark = 0x6d61726b6d61726b;

static void *get(size_t n, size_t align) {
	void *p;
	if (align < 16)
		align = 16;
	while (n > size_t(1) << 40 || !(p = aligned_alloc(align, (n + 2 * align - 1) / align * align))) {
		std::new_handler h = std::get_new_handler();
		if (!h)
			throw std::bad_alloc();
		h();
	}
	__atomic_fetch_add(&cxxtest_news, 1, __ATOMIC_RELAXED);
	char *q = (char *)p + align;
	((uint64_t *)q)[-1] = mark;
	return q;
}
static void put(void *p, size_t align) {
	if (!p)
		return;
	if (((uint64_t *)p)[-1] != mark)
		abort();
	((uint64_t *)p)[-1] = 0;
	__atomic_fetch_add(&cxxtest_deletes, 1, __ATOMIC_RELAXED);
	free((char *)p - (align < 16 ? 16 : align));
}

void *operator new(size_t n) { return get(n, 0); }
void operator delete(void *p) noexcept { put(p, 0); }
void *operator new(size_t n, std::align_val_t a) { return get(n, size_t(a)); }
void operator delete(void *p, std::align_val_t a) noexcept { put(p, size_t(a)); }

#ifdef CXXTEST_ARRAYS
void *operator new[](size_t n) { return get(n, 0); }
void operator delete[](void *p) noexcept { put(p, 0); }
#endif
