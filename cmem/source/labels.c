//go:build ignore

// The labels of a goroutine, which pprof.Do has set. The record of the goroutine has a pointer at cmem_labels_at:
//
//	pointer --> a slice of labels --> for each, a string of the key and one of the value
//
// When the program starts, Go sets labels that it knows, and cmem_labels_find looks for them at each word of the
// record. Where they are found, and nowhere else, lies the pointer, and what it points to is as above. Until then
// nothing is copied. Of a program that cheap record runs, the DWARF says both.
//
// No lock is needed to read them. The thread that has called C is the goroutine's own, so nobody else sets its pointer.
// What that points to never changes, and the collector keeps it, as all that records of goroutines point to, where
// it is. The runtime reads the labels in the same way, in the handler of the signal by which it profiles the processor. But
// code outside of Go's library can set the pointer to something else. So the slice must look like one before it is
// followed.
//
// Labels and sets of them are kept, each once, in memory that is not freed. Of a key the first values are kept; one more
// label stands for all others. So a key with another value in each request does not use up the room.

#include "internal.h"

#include <string.h>

uint64_t cmem_labels_cut;
int cmem_labels_short;

enum { word = sizeof(uintptr_t) };

// What Go has: a slice, and the two strings of a label.
struct slice {
	uintptr_t at, n, most;
};
struct text {
	uintptr_t at, n;
};
struct pair {
	struct text key, value;
};

// Of what is taken for labels, and for one; how many are looked at; and no address is lower.
enum { longest = 1 << 10, longest_text = 64 << 10, most_looked_at = 64, least_address = 4096 };

static int looks_right(const struct slice *s) {
	return s->at != 0 && s->at % word == 0 && s->n >= 1 && s->n <= s->most && s->most <= longest;
}

// is_text reports whether a string of Go has these n bytes.
static int is_text(struct gowalk *w, struct text s, const char *p, size_t n) {
	char is[most_value];
	return s.n == n && n <= sizeof is && cmem_read_memory(w->fd, is, s.at, n) == n && memcmp(is, p, n) == 0;
}

// are_labels reports whether a word points to these labels. The word may be anything.
static int are_labels(struct gowalk *w, uintptr_t at, const char *text, const uint16_t *lengths, int n) {
	struct slice s;
	struct pair all[most_labels];
	size_t bytes = n * sizeof *all;
	if (n > most_labels || at == 0 || at % word != 0 || cmem_read_memory(w->fd, &s, at, sizeof s) != sizeof s ||
		!looks_right(&s) || s.n != (uintptr_t)n || cmem_read_memory(w->fd, all, s.at, bytes) != bytes)
		return 0;
	for (int i = 0; i < n; i++) {
		size_t key = lengths[2 * i], value = lengths[2 * i + 1];
		if (!is_text(w, all[i].key, text, key) || !is_text(w, all[i].value, text + key, value))
			return 0;
		text += key + value;
	}
	return 1;
}

uint64_t cmem_labels_search(struct gowalk *w, const char *text, const uint16_t *lengths, int n) {
	uintptr_t words[most_searched];
	uint64_t found = 0;
	size_t have = cmem_read_memory(w->fd, words, w->goroutine, sizeof words) / word;
	for (size_t i = 2; i < have; i++)
		if (n == 0 ? words[i] == 0 : are_labels(w, words[i], text, lengths, n))
			found |= (uint64_t)1 << i;
	return found;
}

void cmem_labels_learned(int at) { __atomic_store_n(&cmem_labels_at, at, __ATOMIC_RELEASE); }

// part returns how many bytes of a text are copied if there is room for so many: characters of UTF-8 stay whole.
static size_t part(const char *p, size_t n, size_t most) {
	if (n <= most)
		return n;
	while (most > 0 && ((unsigned char)p[most] & 0xC0) == 0x80)
		most--;
	return most;
}

// get copies n bytes of Go memory. Of a program that was not built with this package nobody has promised that labels are
// those of the runtime, so what it has may not be mapped.
static int get(const struct gowalk *w, void *to, uintptr_t p, size_t n) {
#ifdef CMEM_SHARED
	return cmem_read_memory(w->fd, to, p, n) == n;
#else
	(void)w;
	memcpy(to, (const void *)p, n);
	return 1;
#endif
}

void cmem_labels_copy(struct copied *to, const struct gowalk *w) {
	struct slice s;
	struct pair all[most_looked_at];
	char value[most_value + 1];
	to->n = to->cut = to->used = 0;
	if (w->labels == 0 || w->labels % word != 0 || !get(w, &s, w->labels, sizeof s))
		return;
	if (!looks_right(&s)) {
		to->cut = s.n > longest && s.n <= s.most; // more than anybody sets
		return;
	}
	size_t n = s.n < most_looked_at ? s.n : most_looked_at;
	to->cut = n < s.n;
	if (!get(w, all, s.at, n * sizeof *all))
		return;
	for (size_t i = 0; i < n; i++) {
		size_t left = sizeof to->text - to->used, k = all[i].key.n, v = all[i].value.n;
		// One without a key would have other programs refuse the profile.
		if (to->n == most_labels || k == 0 || k > most_key || k > left || v > longest_text ||
			all[i].key.at < least_address || (v > 0 && all[i].value.at < least_address)) { // or this is no label
			to->cut = 1;
			continue;
		}
		if (!get(w, to->text + to->used, all[i].key.at, k) ||
			!get(w, value, all[i].value.at, v < sizeof value ? v : sizeof value))
			return;
		v = part(value, v, left - k < most_value ? left - k : most_value);
		to->cut |= v < all[i].value.n;
		memcpy(to->text + to->used + k, value, v);
		to->used += k + v;
		to->of[to->n].key = k;
		to->of[to->n].value = v;
		to->n++;
	}
}

// Labels and sets, by their hashes. The caller of a function holds the lock.
enum { buckets = 1 << 14, most_room = 1 << 20, chunk = 64 << 10, most_values = 1000 };
static struct cmem_label *labels[buckets];
static struct cmem_labels *sets[buckets];
static char *room;
static size_t room_left, room_all;

static void *take(size_t n) {
	n = (n + 7) & ~(size_t)7;
	if (n > room_left) {
		if (room_all + chunk > most_room || !(room = cmem_map(chunk))) {
			room_left = 0;
			return 0;
		}
		room_all += chunk;
		room_left = chunk;
	}
	void *p = room;
	room += n;
	room_left -= n;
	return p;
}

static uint64_t mix(uint64_t h, const char *p, size_t n) {
	uint64_t w;
	for (; n >= sizeof w; p += sizeof w, n -= sizeof w) {
		memcpy(&w, p, sizeof w);
		h = (h ^ w) * 0x9E3779B97F4A7C15u; // 2^64 divided by the golden ratio
		h ^= h >> 29;
	}
	w = n;
	memcpy((char *)&w + 1, p, n); // less than 8
	h = (h ^ w) * 0x9E3779B97F4A7C15u;
	return h ^ h >> 29;
}

// label returns the label with that key and value, which it makes if add is set; or 0.
static struct cmem_label *label(const char *key, size_t k, const char *value, size_t v, int add) {
	uint64_t h = mix(mix(k, key, k), value, v);
	struct cmem_label **at = &labels[h % buckets], *l = *at;
	while (l &&
		(l->hash != h || l->key != k || l->value != v || memcmp(l->text, key, k) != 0 ||
			memcmp(l->text + k, value, v) != 0))
		l = l->next;
	if (l || !add || !(l = take(sizeof *l + k + v)))
		return l;
	l->hash = h;
	l->key = k;
	l->value = v;
	l->values = 0;
	memcpy(l->text, key, k);
	memcpy(l->text + k, value, v);
	l->next = *at;
	return *at = l;
}

// kept returns the label with that key and value, or the one that stands for the key's other values, or 0.
static struct cmem_label *kept(const char *key, size_t k, const char *value, size_t v, int *cut) {
	static const char others[] = "[other values]";
	struct cmem_label *l = label(key, k, value, v, 0);
	if (l)
		return l;
	struct cmem_label *other = label(key, k, others, sizeof others - 1, 1);
	if (other && other->values < most_values && (l = label(key, k, value, v, 1)) != 0) {
		other->values++;
		return l;
	}
	*cut = 1;
	return other;
}

const struct cmem_labels *cmem_labels_of(const struct copied *from) {
	const struct cmem_label *all[most_labels];
	const char *text = from->text;
	size_t n = 0;
	int cut = from->cut;
	uint64_t h = 0;
	for (int i = 0; i < from->n; i++) {
		size_t k = from->of[i].key, v = from->of[i].value;
		if ((all[n] = kept(text, k, text + k, v, &cut)) != 0)
			h = (h ^ all[n++]->hash) * 0x9E3779B97F4A7C15u;
		text += k + v;
	}
	struct cmem_labels **at = &sets[h % buckets], *s = n > 0 ? *at : 0;
	while (s && (s->hash != h || s->n != n || memcmp(s->of, all, n * sizeof *all) != 0))
		s = s->next;
	if (!s && n > 0) {
		if ((s = take(sizeof *s + n * sizeof *all)) != 0) {
			s->hash = h;
			s->n = n;
			memcpy(s->of, all, n * sizeof *all);
			s->next = *at;
			*at = s;
		} else {
			cut = 1;
		}
	}
	cmem_labels_short = cut;
	return s;
}
