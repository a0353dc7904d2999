//go:build ignore

// The operators new and delete of C++. Those of libstdc++ call malloc, and would be counted there; those
// of an allocator that is preloaded do not. So there are operators here, which take the block from the
// next allocator and count it once. Where there is no memory they do what the standard says: they call
// the handler of the program until there is some, or throw.
//
//	operators of its own has   are called
//	nobody                     those of this file
//	the program, some          these; those of this file for the others call them, as libstdc++'s do
//	a library                  those of the library, as without this package

#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <stdlib.h>

#define caller __builtin_return_address(0)

// A size, an alignment and nothrow_t are passed as they are named: m, St11align_val_t and
// RKSt9nothrow_t. The first functions are those of this package, and throw if that is promised.
EXPORT(void *, _Znwm, (size_t), cmem_new)
EXPORT(void *, _Znam, (size_t), cmem_new_array)
EXPORT(void *, _ZnwmRKSt9nothrow_t, (size_t, const void *), cmem_new_nothrow)
EXPORT(void *, _ZnamRKSt9nothrow_t, (size_t, const void *), cmem_new_array_nothrow)
EXPORT(void *, _ZnwmSt11align_val_t, (size_t, size_t), cmem_new_aligned)
EXPORT(void *, _ZnamSt11align_val_t, (size_t, size_t), cmem_new_array_aligned)
EXPORT(void *, _ZnwmSt11align_val_tRKSt9nothrow_t, (size_t, size_t, const void *), cmem_new_aligned_nothrow)
EXPORT(void *, _ZnamSt11align_val_tRKSt9nothrow_t, (size_t, size_t, const void *), cmem_new_array_aligned_nothrow)
EXPORT(void, _ZdlPv, (void *), cmem_delete)
EXPORT(void, _ZdaPv, (void *), cmem_delete_array)
EXPORT(void, _ZdlPvm, (void *, size_t), cmem_delete_sized)
EXPORT(void, _ZdaPvm, (void *, size_t), cmem_delete_array_sized)
EXPORT(void, _ZdlPvRKSt9nothrow_t, (void *, const void *), cmem_delete_nothrow)
EXPORT(void, _ZdaPvRKSt9nothrow_t, (void *, const void *), cmem_delete_array_nothrow)
EXPORT(void, _ZdlPvSt11align_val_t, (void *, size_t), cmem_delete_aligned)
EXPORT(void, _ZdaPvSt11align_val_t, (void *, size_t), cmem_delete_array_aligned)
EXPORT(void, _ZdlPvmSt11align_val_t, (void *, size_t, size_t), cmem_delete_sized_aligned)
EXPORT(void, _ZdaPvmSt11align_val_t, (void *, size_t, size_t), cmem_delete_array_sized_aligned)
EXPORT(void, _ZdlPvSt11align_val_tRKSt9nothrow_t, (void *, size_t, const void *), cmem_delete_aligned_nothrow)
EXPORT(void, _ZdaPvSt11align_val_tRKSt9nothrow_t, (void *, size_t, const void *), cmem_delete_array_aligned_nothrow)

// Functions of libstdc++, where that is linked statically, perhaps only in part. Else they are found
// by dlsym when they are needed.
typedef void handler(void);
extern handler *_ZSt15get_new_handlerv(void) __attribute__((weak));
extern void _ZSt17__throw_bad_allocv(void) __attribute__((weak));

// Whose operators are called: those of this file, or those of a library, which are in next; unknown
// until find_theirs has run.
enum whose { ours, theirs, unknown };
static enum whose whose = unknown;
static struct {
	void *(*plain)(size_t);
	void *(*array)(size_t);
	void *(*nothrow)(size_t, const void *);
	void *(*array_nothrow)(size_t, const void *);
	void *(*aligned)(size_t, size_t);
	void *(*array_aligned)(size_t, size_t);
	void *(*aligned_nothrow)(size_t, size_t, const void *);
	void *(*array_aligned_nothrow)(size_t, size_t, const void *);
	void (*delete)(void *);
	void (*delete_array)(void *);
	void (*delete_sized)(void *, size_t);
	void (*delete_array_sized)(void *, size_t);
	void (*delete_nothrow)(void *, const void *);
	void (*delete_array_nothrow)(void *, const void *);
	void (*delete_aligned)(void *, size_t);
	void (*delete_array_aligned)(void *, size_t);
	void (*delete_sized_aligned)(void *, size_t, size_t);
	void (*delete_array_sized_aligned)(void *, size_t, size_t);
	void (*delete_aligned_nothrow)(void *, size_t, const void *);
	void (*delete_array_aligned_nothrow)(void *, size_t, const void *);
} next;

// file_of returns where the file begins that has a function, or 0.
static void *file_of(void *f) {
	Dl_info info;
	return f && dladdr(f, &info) ? info.dli_fbase : 0;
}

// find_theirs finds the operators of a library, if a plain one is neither of the library of C++ nor
// of the allocator. The linker has exported those of this file if it has met a library with others.
static enum whose find_theirs(void) {
	if (!cmem_resolve()) // the program is linked statically, or has a malloc of its own
		return ours;
	void *plain_new = dlsym(RTLD_NEXT, "_Znwm"), *plain_delete = dlsym(RTLD_NEXT, "_ZdlPv");
	void *cxx = file_of(dlsym(RTLD_NEXT, "_ZSt17__throw_bad_allocv"));
	void *allocator = file_of(*(void **)&cmem_next.malloc);
	if (!plain_new || !plain_delete || !cxx || dlsym(RTLD_DEFAULT, "_Znwm") != (void *)cmem_new)
		return ours;
	void *of_new = file_of(plain_new), *of_delete = file_of(plain_delete);
	if ((of_new == cxx || of_new == allocator) && (of_delete == cxx || of_delete == allocator))
		return ours;
	int missing = 0;
#define FIND(op, name) missing += (*(void **)&next.op = dlsym(RTLD_NEXT, name)) == 0
	FIND(plain, "_Znwm");
	FIND(array, "_Znam");
	FIND(nothrow, "_ZnwmRKSt9nothrow_t");
	FIND(array_nothrow, "_ZnamRKSt9nothrow_t");
	FIND(aligned, "_ZnwmSt11align_val_t");
	FIND(array_aligned, "_ZnamSt11align_val_t");
	FIND(aligned_nothrow, "_ZnwmSt11align_val_tRKSt9nothrow_t");
	FIND(array_aligned_nothrow, "_ZnamSt11align_val_tRKSt9nothrow_t");
	FIND(delete, "_ZdlPv");
	FIND(delete_array, "_ZdaPv");
	FIND(delete_sized, "_ZdlPvm");
	FIND(delete_array_sized, "_ZdaPvm");
	FIND(delete_nothrow, "_ZdlPvRKSt9nothrow_t");
	FIND(delete_array_nothrow, "_ZdaPvRKSt9nothrow_t");
	FIND(delete_aligned, "_ZdlPvSt11align_val_t");
	FIND(delete_array_aligned, "_ZdaPvSt11align_val_t");
	FIND(delete_sized_aligned, "_ZdlPvmSt11align_val_t");
	FIND(delete_array_sized_aligned, "_ZdaPvmSt11align_val_t");
	FIND(delete_aligned_nothrow, "_ZdlPvSt11align_val_tRKSt9nothrow_t");
	FIND(delete_array_aligned_nothrow, "_ZdaPvSt11align_val_tRKSt9nothrow_t");
	return missing == 0 ? theirs : ours;
}

// Several threads may do so at a time, and find the same.
__attribute__((noinline)) int cmem_find_operators(void) {
	enum whose is = __atomic_load_n(&whose, __ATOMIC_ACQUIRE);
	if (is == unknown) {
		is = find_theirs();
		__atomic_store_n(&whose, is, __ATOMIC_RELEASE);
	}
	return is == theirs;
}

static inline int are_theirs(void) {
	return unlikely(__atomic_load_n(&whose, __ATOMIC_RELAXED) != ours) && cmem_find_operators();
}

// block takes a block from the allocator.
static inline void *block(size_t n, size_t align) {
	void *p = 0;
	if (align == 0)
		return cmem_next.malloc(n ? n : 1);
	if (align < sizeof(void *))
		align = sizeof(void *);
	return cmem_next.posix_memalign(&p, align, n ? n : 1) == 0 ? p : 0;
}

// again is called where there is no memory. It returns 0 if there is no handler.
static __attribute__((noinline)) void *again(size_t n, size_t align) {
	handler *(*get)(void) = _ZSt15get_new_handlerv, *h;
	if (!get)
		*(void **)&get = dlsym(RTLD_DEFAULT, "_ZSt15get_new_handlerv");
	while (get && (h = get()) != 0) {
		h();
		void *p = block(n, align);
		if (p)
			return p;
	}
	return 0;
}

static __attribute__((noreturn, noinline)) void throw(void) {
	void (*bad_alloc)(void) = _ZSt17__throw_bad_allocv;
	if (!bad_alloc)
		*(void **)&bad_alloc = dlsym(RTLD_DEFAULT, "_ZSt17__throw_bad_allocv");
	if (bad_alloc)
		bad_alloc();
	abort();
}

// made returns a block for an operator that throws, or does not, and counts it.
static inline void *made(size_t n, size_t align, int throws, void *from) {
	void *p = block(n, align);
	if (unlikely(!p) && !(p = again(n, align)) && throws)
		throw();
	if (!waits() && !counted(n))
		cmem_note(p, n, from);
	return p;
}

// Whether the program has operators of its own that the others are to call.
#define REPLACED(name, ours) ((void *)name != (void *)ours)
static inline int plain_replaced(void) { return REPLACED(_Znwm, cmem_new) || REPLACED(_ZdlPv, cmem_delete); }
static inline int array_replaced(void) {
	return plain_replaced() || REPLACED(_Znam, cmem_new_array) || REPLACED(_ZdaPv, cmem_delete_array);
}
static inline int aligned_replaced(void) {
	return REPLACED(_ZnwmSt11align_val_t, cmem_new_aligned) || REPLACED(_ZdlPvSt11align_val_t, cmem_delete_aligned);
}
static inline int array_aligned_replaced(void) {
	return aligned_replaced() || REPLACED(_ZnamSt11align_val_t, cmem_new_array_aligned) ||
		REPLACED(_ZdaPvSt11align_val_t, cmem_delete_array_aligned);
}

void *cmem_new(size_t n) {
	if (are_theirs())
		return next.plain(n);
	return made(n, 0, 1, caller);
}

void *cmem_new_array(size_t n) {
	if (are_theirs())
		return next.array(n);
	return unlikely(plain_replaced()) ? _Znwm(n) : made(n, 0, 1, caller);
}

void *cmem_new_aligned(size_t n, size_t align) {
	if (are_theirs())
		return next.aligned(n, align);
	return made(n, align, 1, caller);
}

void *cmem_new_array_aligned(size_t n, size_t align) {
	if (are_theirs())
		return next.array_aligned(n, align);
	return unlikely(aligned_replaced()) ? _ZnwmSt11align_val_t(n, align) : made(n, align, 1, caller);
}

// of_cxx returns the operator of that name of the library of C++, which calls the operator of the
// program and catches what that throws; or 0, if that library is linked statically. The operator that
// dlsym(RTLD_NEXT) finds may be that of a preloaded allocator, which does not call the program's.
static __attribute__((noinline)) void *of_cxx(const char *name) {
	Dl_info info;
	void *f = dlsym(RTLD_NEXT, "_ZSt17__throw_bad_allocv"), *file;
	if (!f || !dladdr(f, &info) || !(file = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)))
		return 0;
	return dlsym(file, name); // the file stays open
}

#define NOTHROW(name, op, symbol, replaced, instead) \
	void *name(size_t n, const void *tag) { \
		if (are_theirs()) \
			return next.op(n, tag); \
		if (unlikely(replaced())) { \
			static void *(*f)(size_t, const void *); \
			if (!f) \
				*(void **)&f = of_cxx(symbol); \
			return f ? f(n, tag) : instead(n); \
		} \
		return made(n, 0, 0, caller); \
	}
NOTHROW(cmem_new_nothrow, nothrow, "_ZnwmRKSt9nothrow_t", plain_replaced, _Znwm)
NOTHROW(cmem_new_array_nothrow, array_nothrow, "_ZnamRKSt9nothrow_t", array_replaced, _Znam)

#define NOTHROW_ALIGNED(name, op, symbol, replaced, instead) \
	void *name(size_t n, size_t align, const void *tag) { \
		if (are_theirs()) \
			return next.op(n, align, tag); \
		if (unlikely(replaced())) { \
			static void *(*f)(size_t, size_t, const void *); \
			if (!f) \
				*(void **)&f = of_cxx(symbol); \
			return f ? f(n, align, tag) : instead(n, align); \
		} \
		return made(n, align, 0, caller); \
	}
NOTHROW_ALIGNED(cmem_new_aligned_nothrow, aligned_nothrow, "_ZnwmSt11align_val_tRKSt9nothrow_t", aligned_replaced,
	_ZnwmSt11align_val_t)
NOTHROW_ALIGNED(cmem_new_array_aligned_nothrow, array_aligned_nothrow, "_ZnamSt11align_val_tRKSt9nothrow_t",
	array_aligned_replaced, _ZnamSt11align_val_t)

// The operators delete: each calls the one with fewer parameters, which may be the program's, and
// in the end the plain one.
#define DELETE(op, params, args, instead) \
	void cmem_##op params { \
		if (are_theirs()) \
			next.op args; \
		else \
			instead; \
	}
DELETE(delete, (void *p), (p), cmem_free(p))
DELETE(delete_array, (void *p), (p), _ZdlPv(p))
DELETE(delete_sized, (void *p, size_t n), (p, n), _ZdlPv(p))
DELETE(delete_array_sized, (void *p, size_t n), (p, n), _ZdaPv(p))
DELETE(delete_nothrow, (void *p, const void *tag), (p, tag), _ZdlPv(p))
DELETE(delete_array_nothrow, (void *p, const void *tag), (p, tag), _ZdaPv(p))
DELETE(delete_aligned, (void *p, size_t align), (p, align), cmem_free(p))
DELETE(delete_array_aligned, (void *p, size_t align), (p, align), _ZdlPvSt11align_val_t(p, align))
DELETE(delete_sized_aligned, (void *p, size_t n, size_t align), (p, n, align), _ZdlPvSt11align_val_t(p, align))
DELETE(delete_array_sized_aligned, (void *p, size_t n, size_t align), (p, n, align), _ZdaPvSt11align_val_t(p, align))
DELETE(
	delete_aligned_nothrow, (void *p, size_t align, const void *tag), (p, align, tag), _ZdlPvSt11align_val_t(p, align))
DELETE(delete_array_aligned_nothrow, (void *p, size_t align, const void *tag), (p, align, tag),
	_ZdaPvSt11align_val_t(p, align))
