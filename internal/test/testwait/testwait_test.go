package testwait

import (
	"fmt"
	"testing"
	"time"
)

// A late is a test whose deadline has come.
type late struct {
	testing.TB
	said string
}

func (l *late) Helper()                     {}
func (l *late) Deadline() (time.Time, bool) { return time.Now(), true }
func (l *late) Fatalf(format string, args ...any) {
	l.said = fmt.Sprintf(format, args...)
	panic(l)
}

// says runs f, which has to fail the test with that text.
func says(t *testing.T, want string, f func(l *late)) {
	t.Helper()
	l := new(late)
	defer func() {
		t.Helper()
		if v := recover(); v != any(l) || l.said != want {
			t.Errorf("panic value %v, and it says %q, want %q", v, l.said, want)
		}
	}()
	f(l)
}

// TestUntil waits for what happens, and for what does not.
func TestUntil(t *testing.T) {
	calls := 0
	Until(t, "the third call comes", func() bool { calls++; return calls == 3 })
	if calls != 3 {
		t.Errorf("%d calls, want 3", calls)
	}
	Until(new(late), "now", func() bool { return true })
	says(t, "still waiting until never", func(l *late) { Until(l, "never", func() bool { return false }) })
}

// TestReturn waits for a function that returns, and for one that does not.
func TestReturn(t *testing.T) {
	called := false
	Return(t, "f", func() { called = true })
	if !called {
		t.Error("Return did not wait")
	}
	block := make(chan bool)
	defer close(block)
	says(t, "f does not return", func(l *late) { Return(l, "f", func() { <-block }) })
}

// TestDeadline looks at tests with and without a deadline.
func TestDeadline(t *testing.T) {
	end, limited := t.Deadline()
	if at, ok := Deadline(t); ok != limited || limited && at != end.Add(-spare) {
		t.Errorf("%v, %v, of a test that ends at %v, %v", at, ok, end, limited)
	}
	if at, ok := Deadline(struct{ testing.TB }{t}); ok {
		t.Errorf("%v, of one that does not know", at)
	}
}
