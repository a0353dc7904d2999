//go:build ignore

// Two tables: the stacks that have allocated, with their sums (struct cmem_stack), and the sampled
// blocks in use (struct live), each of which points to its stack. malloc of a sampled block adds to
// both; free removes the block, and adds to the sums of the stack what was freed. The memory is the
// system's, never that of malloc.
//
// The caller of a function holds the lock, unless internal.h or cmem.h says that it takes the lock.

#include "internal.h"

#include <math.h>
#include <string.h>

// The stacks that have allocated, that have mapped memory, and that have made threads are kept apart.
enum { buckets = 1 << 14 };
static struct cmem_stack *hashed[cmem_kinds][buckets];
in_shared static struct stacks {
	struct cmem_stack *all;
	size_t n;
	double live, var;      // bytes in use, and the variance of that
	double blocks, usable; // in use
	// The maximum of live, its variance, and how often there was a new maximum.
	double peak_live, peak_var;
	uint64_t peak;
} stacks[cmem_kinds];

// Stacks lie in chunks that are never freed. Beyond most_stacks, a stack counts as other: a
// program whose stacks all differ must not fill its memory with them. Beyond most_labelled, one counts as that without
// labels.
enum { chunk = 256 << 10, most_stacks = 1 << 17, most_labelled = 1 << 15 };
static size_t labelled;
static char *room;
static size_t room_left;
static struct cmem_stack *other[cmem_kinds];

// The sampled blocks in use: open addressing, with a power of two of places.
in_shared static struct live *live;
in_shared static size_t live_size, live_n;

static struct cmem_stack *stack_of(
	int of, const uintptr_t *pcs, uint32_t c, uint32_t go, const struct cmem_labels *labels) {
	uint32_t closed = __atomic_load_n(&cmem_closed, __ATOMIC_RELAXED);
	uint64_t h = (uint64_t)c << 32 ^ (uint64_t)closed << 16 ^ go;
	for (uint32_t i = 0; i < c + go; i++) {
		h = (h ^ pcs[i]) * 0x9E3779B97F4A7C15u; // 2^64 divided by the golden ratio
		h ^= h >> 29;
	}
	h ^= (uintptr_t)labels * 0x9E3779B97F4A7C15u;
	struct cmem_stack **at = &hashed[of][h % buckets];
	for (struct cmem_stack *s = *at; s; s = s->next)
		if (s->hash == h && s->c == c && s->go == go && s->closed == closed && s->labels == labels &&
			memcmp(s->pcs, pcs, (c + go) * sizeof *pcs) == 0)
			return s;
	size_t n = sizeof(struct cmem_stack) + (c + go) * sizeof *pcs;
	if (stacks[of].n >= most_stacks && c + go > 0) {
		cmem_labels_short |= labels != 0;
		return other[of] ? other[of] : (other[of] = stack_of(of, pcs, 0, 0, 0));
	}
	struct cmem_stack *plain = 0;
	if (labels) {
		plain = stack_of(of, pcs, c, go, 0);
		if (!plain || plain == other[of] || labelled >= most_labelled) {
			cmem_labels_short = 1;
			return plain;
		}
		labelled++;
	}
	if (n > room_left) {
		char *more = cmem_map(chunk);
		if (!more)
			return 0;
		room = more;
		room_left = chunk;
	}
	struct cmem_stack *s = (struct cmem_stack *)room;
	room += n;
	room_left -= n;
	s->hash = h;
	s->c = c;
	s->go = go;
	s->closed = closed;
	s->of = of;
	s->labels = labels;
	s->plain = plain ? plain : s;
	memcpy(s->pcs, pcs, (c + go) * sizeof *pcs);
	s->next = *at;
	*at = s;
	s->all = stacks[of].all;
	__atomic_store_n(&stacks[of].all, s, __ATOMIC_RELEASE);
	stacks[of].n++;
#ifdef CMEM_SHARED
	cmem_shared_stack(s);
#endif
	return s;
}

// in_use adds to the bytes in use and their variance.
static void in_use(int of, double bytes, double var) {
	stacks[of].live += bytes;
	stacks[of].var += var;
}

static size_t place_of(uintptr_t p) { return (p >> 4) * 0x9E3779B97F4A7C15u >> 20 & (live_size - 1); }

static struct live *find(uintptr_t p) {
	if (live_size == 0)
		return 0;
	for (size_t i = place_of(p); live[i].p; i = (i + 1) & (live_size - 1))
		if (live[i].p == p)
			return &live[i];
	return 0;
}

// put enters a block that is not there. It returns 0 if there is no memory.
static int put(const struct live *l) {
	if (2 * live_n >= live_size) {
		size_t size = live_size ? 2 * live_size : 1024, was = live_size;
		struct live *more = cmem_map(size * sizeof *more), *from = live;
		if (!more)
			return 0;
		live = more;
		live_size = size;
		for (size_t i = 0; i < was; i++)
			if (from[i].p) {
				size_t at = place_of(from[i].p);
				while (live[at].p)
					at = (at + 1) & (live_size - 1);
				live[at] = from[i];
			}
		if (from)
			cmem_unmap(from, was * sizeof *from);
	}
	size_t at = place_of(l->p);
	while (live[at].p)
		at = (at + 1) & (live_size - 1);
	live[at] = *l;
	live_n++;
	in_use(cmem_of_malloc, l->weight * l->n, cmem_variance(l->weight, l->n));
	stacks[cmem_of_malloc].blocks += l->weight;
	stacks[cmem_of_malloc].usable += l->weight * l->usable;
	uint8_t *f = &cmem_filter[filter_of(l->p)];
	if (*f != 255)
		__atomic_store_n(f, *f + 1, __ATOMIC_RELAXED);
	return 1;
}

// take_off removes a block.
static void take_off(struct live *l) {
	uint8_t *f = &cmem_filter[filter_of(l->p)];
	if (*f != 255)
		__atomic_store_n(f, *f - 1, __ATOMIC_RELAXED);
	live_n--;
	in_use(cmem_of_malloc, -l->weight * l->n, -cmem_variance(l->weight, l->n));
	stacks[cmem_of_malloc].blocks -= l->weight;
	stacks[cmem_of_malloc].usable -= l->weight * l->usable;
	// Those behind it move up if their place is at or before the gap.
	size_t gap = l - live;
	for (size_t i = (gap + 1) & (live_size - 1); live[i].p; i = (i + 1) & (live_size - 1)) {
		size_t place = place_of(live[i].p);
		if (((i - place) & (live_size - 1)) >= ((i - gap) & (live_size - 1))) {
			live[gap] = live[i];
			gap = i;
		}
	}
	live[gap].p = 0;
}

// The profile of cheap record has what each stack held at the maximum of live. To copy all sums at
// each new maximum would be slow. So when a stack changes for the first time after a new maximum, it notes
// what it held before the change: that is what it held at the maximum.
//
// changes is called before the sums of a stack change.
static void changes(struct cmem_stack *s) {
	if (s->peak != stacks[s->of].peak) {
		s->peak = stacks[s->of].peak;
		s->peak_bytes = s->alloc_bytes - s->free_bytes;
	}
}

// began adds a block to the sums of a stack.
static void began(struct cmem_stack *s, double weight, double n) {
	struct stacks *all = &stacks[s->of];
	changes(s);
	s->allocs += weight;
	s->alloc_bytes += weight * n;
	s->alloc_var += cmem_variance(weight, n);
	if (all->live > all->peak_live) {
		all->peak_live = all->live;
		all->peak_var = all->var;
		all->peak++;
	}
}

static void ended(const struct live *l) {
	changes(l->stack);
	l->stack->frees += l->weight;
	l->stack->free_bytes += l->weight * l->n;
	l->stack->free_var += cmem_variance(l->weight, l->n);
}

double cmem_weight(size_t n, int64_t rate) { return rate <= 1 ? 1 : -1 / expm1(-(double)(n ? n : 1) / rate); }

int cmem_take(void *p, size_t n, size_t usable, int64_t rate, const uintptr_t *pcs, uint32_t c, uint32_t go,
	const struct cmem_labels *labels) {
	struct cmem_stack *s = stack_of(cmem_of_malloc, pcs, c, go, labels);
	if (!s)
		return 0;
	cmem_end(p); // a block whose free this package has not seen
	struct live l = {(uintptr_t)p, s, n, usable, cmem_weight(n, rate)};
	if (!put(&l))
		return 0;
	began(s, l.weight, n);
	return 1;
}

struct cmem_stack *cmem_mapping_began(
	const uintptr_t *pcs, uint32_t c, uint32_t go, const struct cmem_labels *labels, double weight, size_t n) {
	struct cmem_stack *s = stack_of(cmem_of_mmap, pcs, c, go, labels);
	if (s) {
		in_use(cmem_of_mmap, weight * n, cmem_variance(weight, n));
		began(s, weight, n);
	}
	return s;
}

struct cmem_stack *cmem_thread_stack(const uintptr_t *pcs, uint32_t c, uint32_t go) {
	return stack_of(cmem_of_thread, pcs, c, go, 0);
}

void cmem_mapping_ended(struct cmem_stack *s, double bytes, double var) {
	changes(s);
	s->free_bytes += bytes;
	s->free_var += var;
	in_use(cmem_of_mmap, -bytes, -var);
}

void cmem_mapping_none(void) { stacks[cmem_of_mmap].live = stacks[cmem_of_mmap].var = 0; }

void cmem_end(void *p) {
	struct live *l = find((uintptr_t)p);
	if (l) {
		ended(l);
		take_off(l);
	}
}

int cmem_detach(void *p, struct live *was) {
	sigset_t old;
	cmem_lock(&old);
	struct live *l = find((uintptr_t)p);
	if (l) {
		*was = *l;
		take_off(l);
	}
	cmem_unlock(&old);
	return l != 0;
}

void cmem_detached(const struct live *was, int gone) {
	sigset_t old;
	cmem_lock(&old);
	if (gone || !put(was))
		ended(was);
	cmem_unlock(&old);
}

void cmem_live(int of, double *bytes, double *variance) {
	*bytes = stacks[of].live > 0 ? stacks[of].live : 0;
	*variance = stacks[of].var > 0 ? stacks[of].var : 0;
}

void cmem_live_blocks(double *blocks, double *usable) {
	*blocks = stacks[cmem_of_malloc].blocks > 0 ? stacks[cmem_of_malloc].blocks : 0;
	*usable = stacks[cmem_of_malloc].usable > 0 ? stacks[cmem_of_malloc].usable : 0;
}

size_t cmem_sites(int of, struct cmem_site *to, size_t most) {
	enum { at_once = 128 }; // stacks that are copied while the lock is held
	sigset_t old;
	cmem_lock(&old);
	size_t n = stacks[of].n, left = n < most ? n : most;
	struct cmem_stack *s = stacks[of].all;
	cmem_unlock(&old);
	if (most == 0)
		return n;
	for (size_t i = left; i < n; i++) // a stack never changes its neighbour
		s = s->all;
	while (left > 0) {
		cmem_lock(&old);
		uint32_t closed = __atomic_load_n(&cmem_closed, __ATOMIC_RELAXED);
		for (int i = 0; i < at_once && left > 0; i++, left--, s = s->all)
			*to++ = (struct cmem_site){s, s->plain, s->pcs, s->labels, s->c, s->go, s->closed != closed, s->allocs,
				s->alloc_bytes, s->alloc_var, s->frees, s->free_bytes, s->free_var};
		cmem_unlock(&old);
	}
	return n;
}

#ifdef CMEM_SHARED
void cmem_table_fields(struct fields *f) {
	f->stacks = (uintptr_t)&stacks[cmem_of_malloc].all;
	f->mapping_stacks = (uintptr_t)&stacks[cmem_of_mmap].all;
	f->stack_all = offsetof(struct cmem_stack, all);
	f->stack_c = offsetof(struct cmem_stack, c);
	f->stack_go = offsetof(struct cmem_stack, go);
	f->stack_closed = offsetof(struct cmem_stack, closed);
	f->stack_labels = offsetof(struct cmem_stack, labels);
	f->stack_allocs = offsetof(struct cmem_stack, allocs);
	f->stack_peak_bytes = offsetof(struct cmem_stack, peak_bytes);
	f->stack_peak = offsetof(struct cmem_stack, peak);
	f->stack_pcs = offsetof(struct cmem_stack, pcs);
	f->live = (uintptr_t)&stacks[cmem_of_malloc].live;
	f->live_variance = (uintptr_t)&stacks[cmem_of_malloc].var;
	f->live_samples = (uintptr_t)&live_n;
	f->live_blocks = (uintptr_t)&stacks[cmem_of_malloc].blocks;
	f->live_usable = (uintptr_t)&stacks[cmem_of_malloc].usable;
	f->peak_live = (uintptr_t)&stacks[cmem_of_malloc].peak_live;
	f->peak_variance = (uintptr_t)&stacks[cmem_of_malloc].peak_var;
	f->peak = (uintptr_t)&stacks[cmem_of_malloc].peak;
	f->mapping_peak = (uintptr_t)&stacks[cmem_of_mmap].peak;
	f->closed = (uintptr_t)&cmem_closed;
}
#endif
