//go:build cgo && cxx

package cxxtest_test

import (
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/libc/internal/cxxtest"
	"github.com/cheapgo/cheap/own"
)

// says is what a child must print about a pool, as a line of its own.
func says(pool, what string) string {
	return "cheap: " + pool + ": the destructor of a resource " + what + "\n"
}

const (
	letOut = "let an exception out"
	ended  = "called std::terminate"
)

// ends runs f in a child, which must end by SIGABRT, and returns what it printed before
// the runtime of Go printed the signal.
func ends(t *testing.T, f func()) string {
	t.Helper()
	output, status := testchild.Run(t, f)
	before, _, found := strings.Cut(output, "SIGABRT: abort\n")
	if status != 2 || !found {
		t.Errorf("status %d, output\n%s", status, output)
	}
	return before
}

// TestBroken destroys what ends the program, once by Close and once by a batch of which
// it is the last. The line with the name of the pool is the first, before that of the C++
// library.
func TestBroken(t *testing.T) {
	for _, b := range cxxtest.Breakers() {
		line, library := says(cxxtest.Broken, letOut), "what():  the disk is full\n"
		switch b.Name {
		case "std::terminate":
			line, library = says(cxxtest.Broken, ended), "without an active exception\n"
		case "a number":
			library = "instance of 'int'\n"
		case "within another pool":
			line = says(cxxtest.Inner, letOut)
		}
		destroy := libc.Destructor(b.Destroy)
		if b.Name == "a number" {
			destroy = libc.Destructor(b.Destroy, libc.NoCallback)
		}
		for name, f := range map[string]func(){
			"by Close": func() {
				pool := own.NewPool(own.Options{Name: cxxtest.Broken, Release: destroy})
				var m thing
				if err := m.h.Own(pool, b.Make(), 0); err != nil {
					panic(err)
				}
				m.h.Close()
			},
			"in a batch": func() {
				good := cxxtest.Kinds()[0]
				batch := []uintptr{uintptr(good.Make(1)), uintptr(good.Make(2))}
				libc.Destructor(good.Destroy, libc.NoCallback)(nil, batch)
				last := uintptr(b.Make())
				destroy(nil, []uintptr{0, 0, 0, last}) // NULL is destroyed by doing nothing
			},
		} {
			t.Run(b.Name+", "+name, func(t *testing.T) {
				got := ends(t, f)
				if !strings.HasPrefix(got, line) || strings.Count(got, "cheap: ") != 1 || !strings.Contains(got, library) {
					t.Errorf("the program ended with\n%s\nwant\n%s...%s", got, line, library)
				}
			})
		}
	}
}

// TestNoPool ends the program by an exception that no destructor has let out, on a thread
// that has destroyed resources. The line must not blame a pool.
func TestNoPool(t *testing.T) {
	got := ends(t, func() {
		good := cxxtest.Kinds()[0]
		libc.Destructor(good.Destroy)(nil, []uintptr{uintptr(good.Make(1)), uintptr(good.Make(2))})
		cxxtest.Throw()
	})
	if strings.Contains(got, "cheap: ") || !strings.Contains(got, "the disk is full") {
		t.Errorf("the program ended with\n%s", got)
	}
}

// TestHandlers has the program install a terminate handler before the first release, and
// after it.
func TestHandlers(t *testing.T) {
	const own = "a handler of the program\n"
	line := says(cxxtest.Broken, letOut)
	destroy := func() {
		broken := cxxtest.Breakers()[1]
		libc.Destructor(broken.Destroy)(nil, []uintptr{uintptr(broken.Make())})
	}
	first := func() {
		good := cxxtest.Kinds()[0]
		libc.Destructor(good.Destroy)(nil, []uintptr{uintptr(good.Make(1))})
	}
	for _, c := range []struct {
		name  string
		f     func()
		wants string
	}{
		{"before, the last", func() { cxxtest.InstallHandler(false); first(); destroy() }, line + own},
		{"before", func() { cxxtest.InstallHandler(true); destroy() }, line + own + "terminate called"},
		{"after", func() { first(); cxxtest.InstallHandler(true); destroy() }, own + line + "terminate called"},
		{"after, the last", func() { first(); cxxtest.InstallHandler(false); destroy() }, own},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ends(t, c.f)
			if !strings.HasPrefix(got, c.wants) || strings.Count(got, own) != 1 {
				t.Errorf("the program ended with\n%s\nwant\n%s", got, c.wants)
			}
		})
	}
}
