//go:build cgo && (amd64 || arm64)

package main

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/page/heappage"
)

// TestMostGrown has what two places have mapped at each moment of a second. One is the start of an allocator, which was late.
func TestMostGrown(t *testing.T) {
	var moments []heappage.Moment
	for i := range 7 {
		moments = append(moments, heappage.Moment{At: time.Duration(i) * time.Second / 6})
	}
	for _, c := range []struct {
		start, forgets []int64
		want           string
		by             int64
	}{
		{[]int64{0, 0, 0, 64, 64, 64, 64}, []int64{0, 0, 4, 8, 8, 16, 32}, "forgets", 32},
		{[]int64{0, 64, 64, 64, 64, 64, 64}, []int64{0, 0, 0, 0, 8, 8, 8}, "forgets", 8},
		{[]int64{0, 0, 0, 64, 64, 64, 64}, []int64{0, 0, 0, 0, 0, 0, 8}, "start", 64},
		{[]int64{0, 0, 0, 64, 64, 64, 64}, nil, "start", 64},
	} {
		all := map[string][]int64{"start": c.start}
		if c.forgets != nil {
			all["forgets"] = c.forgets
		}
		if place, by := mostGrown(all, moments); place != c.want || by != c.by {
			t.Errorf("of %d and %d: %s, by %d, want %s, by %d", c.start, c.forgets, place, by, c.want, c.by)
		}
	}
	if place, by := mostGrown(nil, moments); place != "" || by != 0 {
		t.Errorf("of nothing: %s, by %d", place, by)
	}
}

// TestRecordMapped records a program in C that maps memory as a library with an allocator of its own does.
func TestRecordMapped(t *testing.T) {
	t.Parallel()
	const text = `
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
void *volatile kept;
static __attribute__((noinline)) void *lib_je_pages_map(size_t n) {
	void *volatile p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p;
}
void *lib_je_malloc(size_t n) { return lib_je_pages_map(n); }
int main(void) {
	char *p = lib_je_pages_map(24 << 20);
	munmap(p + (8 << 20), 8 << 20);
	kept = mremap(p, 8 << 20, 2 << 20, 0);
	kept = malloc(40 << 20);
	return 0;
}
`
	program := filepath.Join(t.TempDir(), "program")
	compileC(t, program, text, "-O1")
	r := record(t, "-rate", "1", program)
	want := regexp.MustCompile(`(?m)^  mapped +24\.0 MiB  program, by jemalloc \(lib_je_\), without malloc; 10\.0 MiB at the end\n  allocator   jemalloc \(lib_je_\) is in program, beside malloc: what it maps is seen, and not its blocks\n`)
	if r.code != 0 || !want.MatchString(r.stderr) || !strings.Contains(r.stderr, "\n  at the end  40.0 MiB in use, by place:\n") {
		t.Errorf("code %d, no %s in\n%s", r.code, want, r.stderr)
	}
}
