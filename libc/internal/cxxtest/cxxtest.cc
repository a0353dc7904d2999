//go:build cgo && cxx

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "cheap.hpp"
#include "cxxtest.h"

namespace {

std::atomic<long> alive, destroyed, deleted;

struct thing {
	int number;
	thing(int n) : number(n) { alive++; }
	thing(const thing &) = delete;
	virtual ~thing() {
		destroyed += number;
		number = -1;
		alive--;
	}
};

// other is the second base of derived, at another address than the object.
struct other {
	int number;
	explicit other(int n) : number(n) {}
	other(const other &) = delete;
	virtual ~other() {}
};

struct derived : thing, other {
	using thing::number;
	explicit derived(int n) : thing(n), other(n) {}
};

// Deleters: one without state, one with, one whose pointers are not addresses, one that
// has no state and cannot be made from nothing.
struct stateless {
	void operator()(const thing *t) const {
		deleted++;
		delete t;
	}
};

struct stateful {
	std::atomic<long> *count;
	void operator()(thing *t) const {
		++*count;
		delete t;
	}
};

struct numbered {
	// A pointer that is a number: the address without its lowest bits, which are 0.
	struct pointer {
		std::uintptr_t n;
		pointer(std::nullptr_t = nullptr) : n(0) {}
		explicit pointer(thing *t) : n(reinterpret_cast<std::uintptr_t>(t) >> 3) {}
		explicit operator bool() const { return n != 0; }
		bool operator==(const pointer &p) const { return n == p.n; }
		bool operator!=(const pointer &p) const { return n != p.n; }
		thing *operator->() const { return reinterpret_cast<thing *>(n << 3); }
	};
	void operator()(pointer p) const {
		deleted++;
		delete p.operator->();
	}
};

struct made_from {
	explicit made_from(int) {}
	void operator()(thing *t) const {
		deleted++;
		delete t;
	}
};

void by_function(thing *t) {
	deleted++;
	delete t;
}

using unique = std::unique_ptr<thing>;
using unique_const = std::unique_ptr<const thing>;
using unique_array = std::unique_ptr<thing[]>;
using unique_stateless = std::unique_ptr<const thing, stateless>;
using unique_stateful = std::unique_ptr<thing, stateful>;
using unique_numbered = std::unique_ptr<thing, numbered>;
using unique_made_from = std::unique_ptr<thing, made_from>;
using unique_function = std::unique_ptr<thing, void (*)(thing *)>;
using shared = std::shared_ptr<thing>;
using shared_other = std::shared_ptr<const other>;
using shared_void = std::shared_ptr<void>;

template <class R> int number(void *p) { return cheap::get<R>(p)->number; }
template <> int number<unique_array>(void *p) { return cheap::get<unique_array>(p)[0].number; }
template <> int number<shared_void>(void *p) {
	return static_cast<thing *>(cheap::get<shared_void>(p).get())->number;
}

template <class R> void destroy(void *p) { cheap::destroy<R>(p, CXXTEST_POOL); }

template <class R> cxxtest_kind kind(const char *name, void *(*make)(int), long deleters = 0) {
	return cxxtest_kind{name, make, number<R>, destroy<R>, deleters};
}

shared kept;

const cxxtest_kind kinds[] = {
	kind<thing>("object", [](int n) -> void * { return new thing(n); }),
	kind<derived>("derived", [](int n) { return cheap::give(std::unique_ptr<derived>(new derived(n))); }),
	kind<other>("second base", [](int n) -> void * { return static_cast<other *>(new derived(n)); }),
	kind<unique>("unique", [](int n) { return cheap::give(unique(new derived(n))); }),
	kind<unique_const>("unique, const", [](int n) { return cheap::give(unique_const(new thing(n))); }),
	kind<unique_array>("unique, array", [](int n) { return cheap::give(unique_array(new thing[1]{{n}})); }),
	kind<unique_stateless>("unique, stateless deleter", [](int n) { return cheap::give(unique_stateless(new thing(n))); }, 1),
	kind<unique_stateful>("unique, stateful deleter", [](int n) { return cheap::give(unique_stateful(new thing(n), stateful{&deleted})); }, 1),
	kind<unique_numbered>("unique, no address", [](int n) { return cheap::give(unique_numbered(numbered::pointer(new thing(n)))); }, 1),
	kind<unique_made_from>("unique, deleter from a value", [](int n) { return cheap::give(unique_made_from(new thing(n), made_from(1))); }, 1),
	kind<unique_function>("unique, function", [](int n) { return cheap::give(unique_function(new thing(n), by_function)); }, 1),
	kind<shared>("shared", [](int n) { return cheap::give(std::make_shared<thing>(n)); }),
	kind<shared_other>("shared, second base", [](int n) { return cheap::give(shared_other(std::make_shared<derived>(n))); }),
	kind<shared_void>("shared, void", [](int n) { return cheap::give(shared_void(std::shared_ptr<thing>(new thing(n), by_function))); }, 1),
};

} // namespace

extern "C" {

const cxxtest_kind *cxxtest_kind_at(int i) {
	return static_cast<std::size_t>(i) < sizeof kinds / sizeof kinds[0] ? &kinds[i] : nullptr;
}

void *cxxtest_make(int kind, int number) { return kinds[kind].make(number); }
int cxxtest_number(int kind, void *resource) { return kinds[kind].number(resource); }

long cxxtest_alive() { return alive; }
long cxxtest_destroyed() { return destroyed; }
long cxxtest_deleted() { return deleted; }

void *cxxtest_empty(int i) {
	switch (i) {
	case 0: return cheap::give(unique());
	case 1: return cheap::give(unique_function(nullptr, by_function));
	case 2: return cheap::give(unique_numbered());
	default: return cheap::give(shared());
	}
}

void *cxxtest_share(int number, long *owners) {
	void *resource = cheap::give(std::make_shared<thing>(number));
	kept = cheap::get<shared>(resource);
	*owners = kept.use_count();
	return resource;
}

void cxxtest_unshare() { kept.reset(); }

void cxxtest_destroy_shared(void *resource) { destroy<shared>(resource); }

void cxxtest_delete_small(void *p) { delete static_cast<long *>(p); }
void cxxtest_destroy_small(void *p) { cheap::destroy<long>(p, CXXTEST_POOL); }

} // extern "C"
