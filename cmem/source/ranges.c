//go:build ignore

// The sampled mappings that are in use. munmap may end a part of a mapping, or several at once, mremap may move a part,
// and mmap with MAP_FIXED puts a mapping over others. So the table has ranges of addresses: one that is cut becomes
// two, which have the same stack and weight. It is a treap: a tree by address, and a heap by random numbers, so that
// it is balanced. The caller of a function holds the lock, unless internal.h says otherwise.
//
// Most calls of munmap are for mappings that are not sampled. The filter tells so without a lock. It has, by a part of
// the address, how many ranges touch a unit. Each range enters the units of the smallest size of which it touches few;
// munmap looks at the units of each size.

#include "internal.h"

struct range {
	uintptr_t from, to;
	struct cmem_stack *stack;
	double weight;
	uint64_t order; // above those of both children
	struct range *left, *right;
};

in_shared static struct range *root, *unused;
in_shared static uint64_t in_use; // ranges, with those that are taken out

// The sizes of units are 1 << 16, 1 << 20 and so on.
enum { sizes = 11, first_size = 16, next_size = 4, most_units = 64, filter_size = 1 << 15 };
static uint16_t filter[filter_size]; // a count of UINT16_MAX never changes
static uint32_t with_size[sizes];    // how many ranges have units of the size

static uint16_t *unit(int size, uintptr_t number) {
	return &filter[((number * sizes + size) * 0x9E3779B97F4A7C15u >> 40) % filter_size];
}

static int shift_of(int size) { return first_size + size * next_size; }

// size_of returns the size of the units of a range.
static int size_of(uintptr_t from, uintptr_t to) {
	int size = 0;
	while (size < sizes - 1 && ((to - 1) >> shift_of(size)) - (from >> shift_of(size)) >= most_units)
		size++;
	return size;
}

// enter adds a range to the filter, or removes it.
static void enter(const struct range *r, int by) {
	int size = size_of(r->from, r->to);
	uintptr_t last = (r->to - 1) >> shift_of(size);
	for (uintptr_t u = r->from >> shift_of(size); u <= last; u++) {
		uint16_t *n = unit(size, u);
		if (*n != UINT16_MAX)
			__atomic_store_n(n, *n + by, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&with_size[size], with_size[size] + by, __ATOMIC_RELAXED);
}

int cmem_ranges_any(uintptr_t from, uintptr_t to) {
	for (int size = 0; from < to && size < sizes; size++) {
		if (__atomic_load_n(&with_size[size], __ATOMIC_RELAXED) == 0)
			continue;
		uintptr_t u = from >> shift_of(size), last = (to - 1) >> shift_of(size);
		if (last - u > most_units)
			return 1;
		for (; u <= last; u++)
			if (__atomic_load_n(unit(size, u), __ATOMIC_RELAXED) != 0)
				return 1;
	}
	return 0;
}

static struct range *new_range(void) {
	enum { bytes = 64 << 10 };
	static uint64_t random = 1;
	if (!unused) {
		struct range *more = cmem_map(bytes);
		for (size_t i = 0; more && i < bytes / sizeof *more; i++) {
			more[i].left = unused;
			unused = &more[i];
		}
	}
	struct range *r = unused;
	if (!r)
		return 0;
	unused = r->left;
	random ^= random >> 12, random ^= random << 25, random ^= random >> 27;
	r->order = random * 2685821657736338717u;
	return r;
}

static void drop(struct range *r) {
	r->left = unused;
	unused = r;
}

// split makes two trees of one: what begins below an address, and the others.
static void split(struct range *r, uintptr_t at, struct range **below, struct range **above) {
	while (r)
		if (r->from < at) {
			*below = r;
			below = &r->right;
			r = *below;
		} else {
			*above = r;
			above = &r->left;
			r = *above;
		}
	*below = *above = 0;
}

// join makes one tree of two, the first of which has the lower addresses.
static struct range *join(struct range *a, struct range *b) {
	struct range *all, **to = &all;
	while (a && b)
		if (a->order > b->order) {
			*to = a;
			to = &a->right;
			a = *to;
		} else {
			*to = b;
			to = &b->left;
			b = *to;
		}
	*to = a ? a : b;
	return all;
}

static void put(struct range *r) {
	struct range *below, *above;
	r->left = r->right = 0;
	split(root, r->from, &below, &above);
	root = join(join(below, r), above);
	enter(r, 1);
}

// pop takes one range out of a tree.
static struct range *pop(struct range **all) {
	struct range *r = *all;
	*all = join(r->left, r->right);
	return r;
}

// cut has a range begin at an address, where one lies across it.
static void cut(uintptr_t at) {
	struct range *r = root, *last = 0;
	while (r) // the last range that begins below the address
		if (r->from < at) {
			last = r;
			r = r->right;
		} else {
			r = r->left;
		}
	if (!last || last->to <= at)
		return;
	double n = last->to - last->from, rest = last->to - at, before = n - rest;
	struct range *second = new_range();
	enter(last, -1);
	if (second) {
		in_use++;
		second->from = at;
		second->to = last->to;
		second->stack = last->stack;
		second->weight = last->weight;
	} else {
		cmem_mapping_ended(last->stack, last->weight * rest, cmem_variance(last->weight, rest));
	}
	// The squares of the parts are less than that of the whole.
	cmem_mapping_ended(last->stack, 0,
		cmem_variance(last->weight, n) - cmem_variance(last->weight, rest) - cmem_variance(last->weight, before));
	last->to = at;
	enter(last, 1);
	if (second)
		put(second);
}

int cmem_ranges_add(uintptr_t from, uintptr_t to, double weight, const uintptr_t *pcs, uint32_t c, uint32_t go,
	const struct cmem_labels *labels) {
	struct range *r = new_range();
	if (!r)
		return 0;
	struct cmem_stack *s = cmem_mapping_began(pcs, c, go, labels, weight, to - from);
	if (!s) {
		drop(r);
		return 0;
	}
	in_use++;
	r->from = from;
	r->to = to;
	r->stack = s;
	r->weight = weight;
	put(r);
	return 1;
}

struct range *cmem_ranges_take(uintptr_t from, uintptr_t to) {
	struct range *below, *rest, *taken, *above, *all, *kept = 0;
	cut(from);
	cut(to);
	split(root, from, &below, &rest);
	split(rest, to, &taken, &above);
	root = join(below, above);
	for (all = taken; all;) { // a list, by left: it is no tree any more
		struct range *r = pop(&all);
		enter(r, -1);
		r->left = kept;
		kept = r;
	}
	return kept;
}

static void end(struct range *r) {
	double n = r->to - r->from;
	cmem_mapping_ended(r->stack, r->weight * n, cmem_variance(r->weight, n));
	drop(r);
	if (--in_use == 0)
		cmem_mapping_none();
}

void cmem_ranges_put(struct range *all, uintptr_t by, uintptr_t last) {
	for (struct range *r = all, *next; r; r = next) {
		next = r->left;
		r->from += by;
		r->to += by;
		if (r->from >= last) {
			end(r);
			continue;
		}
		if (r->to > last) {
			double n = r->to - r->from, is = last - r->from;
			cmem_mapping_ended(
				r->stack, r->weight * (n - is), cmem_variance(r->weight, n) - cmem_variance(r->weight, is));
			r->to = last;
		}
		put(r);
	}
}

void cmem_ranges_end(struct range *all) {
	for (struct range *next; all; all = next) {
		next = all->left;
		end(all);
	}
}

size_t cmem_ranges(uintptr_t from, struct cmem_range *to, size_t most) {
	sigset_t old;
	size_t n = 0;
	cmem_lock(&old);
	while (n < most) {
		struct range *r = root, *next = 0;
		while (r) // the first range that does not begin below the address
			if (r->from >= from) {
				next = r;
				r = r->left;
			} else {
				r = r->right;
			}
		if (!next)
			break;
		to[n++] = (struct cmem_range){next->from, next->to, next->stack, next->weight};
		from = next->from + 1;
	}
	cmem_unlock(&old);
	return n;
}
