//go:build cgo && cxx && linux

#include "cxxtest.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <new>
#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

// Some compilers declare these only by a flag.
void operator delete(void *, size_t) noexcept;
void operator delete[](void *, size_t) noexcept;
void operator delete(void *, size_t, std::align_val_t) noexcept;
void operator delete[](void *, size_t, std::align_val_t) noexcept;

namespace {

constexpr std::align_val_t A{64};
const std::nothrow_t &nt = std::nothrow;

// What the compiler may not leave out: a call of an operator by its name, not a new-expression.
const cxxtest_kind kinds[] = {
	{"plain", [](size_t n) { return ::operator new(n); }, [](void *p, size_t) { ::operator delete(p); }, 16, 1},
	{"array", [](size_t n) { return ::operator new[](n); }, [](void *p, size_t) { ::operator delete[](p); }, 16, 1},
	{"plain sized", [](size_t n) { return ::operator new(n); }, [](void *p, size_t n) { ::operator delete(p, n); }, 16, 1},
	{"array sized", [](size_t n) { return ::operator new[](n); }, [](void *p, size_t n) { ::operator delete[](p, n); }, 16, 1},
	{"nothrow", [](size_t n) { return ::operator new(n, nt); }, [](void *p, size_t) { ::operator delete(p, nt); }, 16, 0},
	{"array nothrow", [](size_t n) { return ::operator new[](n, nt); }, [](void *p, size_t) { ::operator delete[](p, nt); }, 16, 0},
	{"aligned", [](size_t n) { return ::operator new(n, A); }, [](void *p, size_t) { ::operator delete(p, A); }, 64, 1},
	{"array aligned", [](size_t n) { return ::operator new[](n, A); }, [](void *p, size_t) { ::operator delete[](p, A); }, 64, 1},
	{"aligned sized", [](size_t n) { return ::operator new(n, A); }, [](void *p, size_t n) { ::operator delete(p, n, A); }, 64, 1},
	{"array aligned sized", [](size_t n) { return ::operator new[](n, A); }, [](void *p, size_t n) { ::operator delete[](p, n, A); }, 64, 1},
	{"aligned nothrow", [](size_t n) { return ::operator new(n, A, nt); }, [](void *p, size_t) { ::operator delete(p, A, nt); }, 64, 0},
	{"array aligned nothrow", [](size_t n) { return ::operator new[](n, A, nt); }, [](void *p, size_t) { ::operator delete[](p, A, nt); }, 64, 0},
};

int handled;
void handler() {
	if (++handled == 3)
		std::set_new_handler(nullptr);
}

void *reserve;
size_t reserved;
rlimit before;
void give_back() {
	handled++;
	munmap(reserve, reserved);
	std::set_new_handler(nullptr);
}

size_t address_space() {
	size_t pages = 0;
	if (FILE *f = fopen("/proc/self/statm", "r")) {
		if (fscanf(f, "%zu", &pages) != 1)
			pages = 0;
		fclose(f);
	}
	return pages * sysconf(_SC_PAGESIZE);
}

struct counted {
	int &n;
	std::string text = std::string(100, 'x');
	~counted() { n++; }
};

__attribute__((noinline)) void below(int depth, int &n) {
	counted c{n};
	if (depth == 0)
		throw std::runtime_error(c.text);
	below(depth - 1, n);
}

} // namespace

const cxxtest_kind *cxxtest_kind_at(int i) {
	return size_t(i) < sizeof kinds / sizeof *kinds ? &kinds[i] : nullptr;
}

void *cxxtest_make(int i, size_t n) { return kinds[i].make(n); }
void cxxtest_destroy(int i, void *p, size_t n) { kinds[i].destroy(p, n); }

const char *cxxtest_pairs(int i, int times, size_t n) {
	for (; times > 0; times--) {
		void *p = kinds[i].make(n);
		if (!p)
			return "no memory";
		if (uintptr_t(p) % kinds[i].align != 0)
			return "not aligned";
		memset(p, 5, n);
		kinds[i].destroy(p, n);
	}
	kinds[i].destroy(nullptr, n);
	return nullptr;
}

const char *cxxtest_fails(int i) {
	volatile size_t huge = PTRDIFF_MAX - 4096;
	void *p = &p;
	bool thrown = false;
	handled = 0;
	std::set_new_handler(handler);
	try {
		p = kinds[i].make(huge);
	} catch (const std::bad_alloc &) {
		thrown = true;
	}
	if (std::set_new_handler(nullptr) != nullptr)
		return "the handler is still there";
	if (handled != 3)
		return handled == 0 ? "the handler was not called" : "the handler was not called three times";
	if (thrown != bool(kinds[i].throws))
		return thrown ? "it has thrown" : "it has not thrown";
	if (!thrown && p != nullptr)
		return "not a null pointer";
	return nullptr;
}

const char *cxxtest_handled(int i, size_t n, void **p) {
	reserved = 4 * n;
	reserve = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (reserve == MAP_FAILED || getrlimit(RLIMIT_AS, &before) != 0)
		return "mmap or getrlimit";
	rlimit now = before;
	now.rlim_cur = address_space() + n / 2;
	if (setrlimit(RLIMIT_AS, &now) != 0)
		return "setrlimit";
	handled = 0;
	std::set_new_handler(give_back);
	const char *wrong = nullptr;
	try {
		*p = kinds[i].make(n);
		if (!*p)
			wrong = "a null pointer";
	} catch (const std::bad_alloc &) {
		wrong = "it has thrown";
	}
	std::set_new_handler(nullptr);
	setrlimit(RLIMIT_AS, &before);
	if (!wrong && handled != 1)
		wrong = "the handler was not called once";
	return wrong;
}

int cxxtest_throws(int depth) {
	int n = 0;
	try {
		below(depth, n);
	} catch (const std::runtime_error &e) {
		return std::string(e.what()) == std::string(100, 'x') ? n : -1;
	}
	return -2;
}

long cxxtest_library_called() {
	auto f = (long (*)())dlsym(RTLD_DEFAULT, "cxxtest_library_news");
	return f ? f() : -1;
}
