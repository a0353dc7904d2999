// cheap.hpp is the C++ side of a binding with package own of github.com/cheapgo/cheap:
// objects of C++ as resources of a pool. This is a copy, which
// "go run github.com/cheapgo/cheap/libc/cxx" makes; its LICENSE is that of the module.
// It needs C++11, and neither exceptions nor run-time type information.
//
// A resource is one address. The class R of a resource says what is there:
//
//	R                       the address is that of               destroy
//	a class                 an object that new has made          deletes it
//	std::unique_ptr<T, D>   the object, or a copy of the         calls D
//	                        unique_ptr if that is more than
//	                        an address
//	std::shared_ptr<T>      a copy of the shared_ptr             drops the copy
//
// give makes a resource, get is for the functions that use it, and destroy is for the
// one that destroys it. That one has C linkage, and Go passes it to libc.Destructor:
//
//	extern "C" void image_destroy(void *p) { cheap::destroy<Image>(p, IMAGE_POOL); }
#ifndef CHEAP_HPP
#define CHEAP_HPP

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace cheap {

// Two bindings in one program may have copies of different versions. The name of the
// namespace keeps them apart, and changes with each change of what is in it.
inline namespace v1 {

namespace internal {

// pool is the name of the pool whose resource this thread destroys, or nullptr.
inline const char *&pool() noexcept {
	static thread_local const char *name = nullptr;
	return name;
}

inline std::terminate_handler next() noexcept;

// terminated is the terminate handler. It names the pool, and leaves the rest to the
// handler that was there before. That of the C++ library prints the exception and aborts.
[[noreturn]] inline void terminated() noexcept {
	if (const char *name = pool()) {
		std::fprintf(stderr, "cheap: %s: the destructor of a resource %s\n", name,
			std::current_exception() ? "let an exception out" : "called std::terminate");
	}
	if (std::terminate_handler handler = next()) {
		handler();
	}
	std::abort();
}

// next returns the handler that was there before. The first call puts ours in its place.
inline std::terminate_handler next() noexcept {
	static const std::terminate_handler before = std::set_terminate(terminated);
	return before;
}

// A resource says what is at the address of a resource of class R.
template <class R> struct resource {
	static R *get(void *p) noexcept { return static_cast<R *>(p); }
	static void destroy(void *p) {
		static_assert(sizeof(R) > 0, "the class must be complete where an object is destroyed");
		delete get(p);
	}
};

template <class T> struct resource<std::shared_ptr<T>> {
	static std::shared_ptr<T> &get(void *p) noexcept { return *static_cast<std::shared_ptr<T> *>(p); }
	static void destroy(void *p) { delete static_cast<std::shared_ptr<T> *>(p); }
};

// is_address reports whether a unique_ptr is an address and nothing more: whether any
// deleter of its class is as good as its own.
template <class T, class D> struct is_address
	: std::integral_constant<bool, std::is_pointer<typename std::unique_ptr<T, D>::pointer>::value &&
		std::is_empty<D>::value && std::is_default_constructible<D>::value> {};

template <class P, bool is_address> struct unique_resource;

template <class P> struct unique_resource<P, true> {
	static typename P::pointer get(void *p) noexcept { return static_cast<typename P::pointer>(p); }
	static void destroy(void *p) { P destroyed(get(p)); }
	static void *give(P p) noexcept {
		return const_cast<void *>(static_cast<const volatile void *>(p.release()));
	}
};

template <class P> struct unique_resource<P, false> {
	static typename P::pointer get(void *p) noexcept { return static_cast<P *>(p)->get(); }
	static void destroy(void *p) { delete static_cast<P *>(p); }
	static void *give(P p) noexcept { return p ? new (std::nothrow) P(std::move(p)) : nullptr; }
};

template <class T, class D> struct resource<std::unique_ptr<T, D>>
	: unique_resource<std::unique_ptr<T, D>, is_address<T, D>::value> {};

} // namespace internal

// give makes a resource of what a pointer owns, and returns its address, for Go. The
// result is nullptr if the pointer is empty, or if there is no memory for a copy of the
// pointer. Then what it owned is destroyed.
template <class T, class D> void *give(std::unique_ptr<T, D> p) noexcept {
	return internal::resource<std::unique_ptr<T, D>>::give(std::move(p));
}

template <class T> void *give(std::shared_ptr<T> p) noexcept {
	return p ? new (std::nothrow) std::shared_ptr<T>(std::move(p)) : nullptr;
}

// get returns what is at an address: the R * or the T *, or for a shared_ptr a reference
// to the copy, of which more copies can be made. R must be the class with which the
// resource was made. A class that R is derived from is another class.
template <class R> auto get(void *p) noexcept -> decltype(internal::resource<R>::get(p)) {
	return internal::resource<R>::get(p);
}

// destroy destroys a resource. pool is the Options.Name of its pool, and must stay valid.
//
// An exception that a destructor or a deleter lets out ends the program, with a line that
// names the pool. The line comes from a terminate handler, because most destructors are
// noexcept and end the program where they are. The first call of destroy installs it. A
// handler that the program installs after that must call the one that it replaces.
template <class R> void destroy(void *p, const char *pool) noexcept {
	internal::next();
	const char *outer = internal::pool(); // not nullptr in the destructor of a resource
	internal::pool() = pool;
	internal::resource<R>::destroy(p);
	internal::pool() = outer;
}

} // namespace v1
} // namespace cheap

#endif
