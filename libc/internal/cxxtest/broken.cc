//go:build cgo && cxx

#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <thread>

#include "cheap.hpp"
#include "cxxtest.h"

namespace {

[[noreturn]] void raise() { throw std::runtime_error("the disk is full"); }

// Of these functions the compiler must not see that they throw, or it warns.
void (*volatile raised)() = raise;
void (*volatile ended)() = std::terminate;

struct implicit { // noexcept, as destructors are
	~implicit() { raised(); }
};

struct may_throw {
	~may_throw() noexcept(false) { raised(); }
};

struct ends {
	~ends() { ended(); }
};

struct number { // throws what is no std::exception
	~number() noexcept(false) { throw 7; }
};

struct member {
	implicit first;
	~member() {}
};

struct deleter {
	void operator()(int *p) const {
		delete p;
		raised();
	}
};

struct fine {
	~fine() {}
};

// It destroys a resource of another pool, and throws after that.
struct outer {
	~outer() {
		cheap::destroy<fine>(new fine, CXXTEST_INNER);
		raised();
	}
};

// The resource of another pool that it destroys throws.
struct around {
	~around() { cheap::destroy<may_throw>(new may_throw, CXXTEST_INNER); }
};

// Its destructor does not return, in another thread than that of the one that throws.
std::atomic<bool> stays;

struct staying {
	~staying() {
		for (stays = true;;) {
			std::this_thread::sleep_for(std::chrono::hours(1));
		}
	}
};

struct beside {
	~beside() {
		std::thread([] { cheap::destroy<staying>(new staying, CXXTEST_INNER); }).detach();
		while (!stays) {
			std::this_thread::yield();
		}
		raised();
	}
};

template <class R> void destroy(void *p) { cheap::destroy<R>(p, CXXTEST_BROKEN); }

template <class T> cxxtest_breaker breaker(const char *name) {
	return cxxtest_breaker{name, []() -> void * { return new T; }, destroy<T>};
}

using unique = std::unique_ptr<int, deleter>;
using boxed = std::unique_ptr<int, void (*)(int *)>;
using shared = std::shared_ptr<int>;

std::terminate_handler before;

[[noreturn]] void own_handler() {
	std::fputs("a handler of the program\n", stderr);
	if (before) {
		before();
	}
	std::abort();
}

const cxxtest_breaker breakers[] = {
	breaker<implicit>("implicit noexcept"),
	breaker<may_throw>("noexcept(false)"),
	breaker<ends>("std::terminate"),
	breaker<number>("a number"),
	breaker<member>("a member"),
	{"a deleter", [] { return cheap::give(unique(new int(1))); }, destroy<unique>},
	{"a function", [] { return cheap::give(boxed(new int(1), [](int *p) { deleter()(p); })); }, destroy<boxed>},
	{"a deleter of a shared_ptr", [] { return cheap::give(shared(new int(1), deleter())); }, destroy<shared>},
	breaker<outer>("after another pool"),
	breaker<around>("within another pool"),
	breaker<beside>("beside another pool"),
};

} // namespace

extern "C" {

const cxxtest_breaker *cxxtest_breaker_at(int i) {
	return static_cast<std::size_t>(i) < sizeof breakers / sizeof breakers[0] ? &breakers[i] : nullptr;
}

void *cxxtest_make_broken(int breaker) { return breakers[breaker].make(); }

void cxxtest_handler(int calls_the_one_before) {
	std::terminate_handler old = std::set_terminate(own_handler);
	before = calls_the_one_before ? old : nullptr;
}

void cxxtest_throw() { raise(); }

} // extern "C"
