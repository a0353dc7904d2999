//go:build cgo && re2

#include <atomic>
#include <string>
#include <vector>

#include <re2/re2.h>
#include <re2/set.h>

#include "cheap.hpp"
#include "re2.h"

namespace {

std::atomic<long> alive;

// counted is a part of each object that Go gets.
struct counted {
	counted() { alive++; }
	~counted() { alive--; }
};

RE2::Options quiet() {
	RE2::Options options;
	options.set_log_errors(false); // they are returned
	return options;
}

} // namespace

struct regexp {
	counted count;
	RE2 re;
	regexp(const char *expression, size_t n) : re(re2::StringPiece(expression, n), quiet()) {}
};

struct set {
	counted count;
	RE2::Set expressions{quiet(), RE2::UNANCHORED};
	std::string error;
};

// RE2 throws nothing but std::bad_alloc, which ends the program as in malloc of cgo.

regexp *regexp_new(const char *expression, size_t n) { return new regexp(expression, n); }

const char *regexp_error(const regexp *re) { return re->re.ok() ? nullptr : re->re.error().c_str(); }

int regexp_instructions(const regexp *re) { return re->re.ProgramSize(); }

int regexp_groups(const regexp *re) { return re->re.NumberOfCapturingGroups(); }

void regexp_destroy(void *re) { cheap::destroy<regexp>(re, REGEXP_POOL); }

int regexp_find(const regexp *re, const char *text, size_t n, ptrdiff_t *at) {
	std::vector<re2::StringPiece> found(re->re.NumberOfCapturingGroups() + 1);
	re2::StringPiece all(n ? text : "", n); // a piece without an address is no match
	if (!re->re.Match(all, 0, n, RE2::UNANCHORED, found.data(), found.size())) {
		return 0;
	}
	for (const re2::StringPiece &piece : found) {
		*at++ = piece.data() ? piece.data() - all.data() : -1;
		*at++ = piece.data() ? piece.data() - all.data() + piece.size() : -1;
	}
	return 1;
}

set *set_new(const char *const *expressions) {
	set *s = new set;
	for (; *expressions && s->error.empty(); expressions++) {
		s->expressions.Add(*expressions, &s->error);
	}
	if (s->error.empty() && !s->expressions.Compile()) {
		s->error = "the expressions need too much memory";
	}
	return s;
}

const char *set_error(const set *s) { return s->error.empty() ? nullptr : s->error.c_str(); }

void set_destroy(void *s) { cheap::destroy<set>(s, SET_POOL); }

int set_match(const set *s, const char *text, size_t n, int *matches) {
	std::vector<int> found;
	s->expressions.Match(re2::StringPiece(text, n), &found);
	for (int i : found) {
		*matches++ = i;
	}
	return found.size();
}

long re2_alive() { return alive; }
