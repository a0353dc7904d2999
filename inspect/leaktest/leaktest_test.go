package leaktest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/own"
	"github.com/cheapgo/cheap/pace"
)

// A fake is a test that fails without consequences.
type fake struct {
	testing.TB
	name     string
	failed   []string
	logged   []string
	cleanups []func()
}

func (f *fake) Helper()          {}
func (f *fake) Name() string     { return f.name }
func (f *fake) Cleanup(c func()) { f.cleanups = append(f.cleanups, c) }
func (f *fake) Errorf(format string, args ...any) {
	f.failed = append(f.failed, fmt.Sprintf(format, args...))
}

// checked runs a test that is checked, on a goroutine of its own, and returns how it fails.
func checked(body func(t *fake), opts ...Option) []string {
	t := &fake{name: "Fake"}
	Check(t, opts...)
	testcall.Aside(func() {
		body(t)
	})
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
	return t.failed
}

var resource [1000]byte

func newPool(name string) *own.Pool {
	return own.NewPool(own.Options{Name: name, Release: func(any, []uintptr) error { return nil }})
}

var (
	conns = newPool("test.Conn")
	kept  []*own.Handle[unsafe.Pointer]
)

//go:noinline
func open(p *own.Pool) *own.Handle[unsafe.Pointer] {
	o := new(own.Handle[unsafe.Pointer])
	if err := o.Own(p, unsafe.Pointer(&resource), len(resource)); err != nil {
		panic(err)
	}
	return o
}

//go:noinline
func openKept(p *own.Pool) *own.Handle[unsafe.Pointer] {
	o := open(p)
	kept = append(kept, o)
	return o
}

func closeKept() {
	for _, o := range kept {
		o.Close()
	}
	kept = nil
}

// mustFail looks for one failure, which has each of the words, or for none.
func mustFail(t *testing.T, got []string, words ...string) {
	t.Helper()
	if len(words) == 0 && len(got) > 0 || len(words) > 0 && len(got) != 1 {
		t.Fatalf("%d failures:\n%s", len(got), strings.Join(got, "\n"))
	}
	for _, w := range words {
		if !strings.Contains(got[0], w) {
			t.Errorf("no %q in\n%s", w, got[0])
		}
	}
}

func TestCheckPools(t *testing.T) {
	const openMade = "made by\ngithub.com/cheapgo/cheap/inspect/leaktest.open\n"
	t.Run("closed", func(t *testing.T) {
		mustFail(t, checked(func(*fake) { open(conns).Close() }))
	})
	t.Run("dropped", func(t *testing.T) {
		mustFail(t, checked(func(*fake) { open(conns) }),
			"leaktest: test.Conn: 1 owner was released by the collector, a Close is missing; "+openMade, "TestCheckPools.func2.1\n")
	})
	t.Run("dropped and collected in the test", func(t *testing.T) {
		mustFail(t, checked(func(f *fake) {
			for range 3 {
				open(conns)
			}
			Collect(f)
		}), "3 owners were released by the collector")
	})
	t.Run("open", func(t *testing.T) {
		mustFail(t, checked(func(*fake) { openKept(conns) }), "test.Conn: 1 owner is open at the end, of 1000 bytes; "+openMade, "leaktest.openKept\n")
	})
	t.Run("open before", func(t *testing.T) {
		mustFail(t, checked(func(*fake) {}))
	})
	t.Run("open before, and closed", func(t *testing.T) {
		mustFail(t, checked(func(*fake) {
			closeKept()
			openKept(conns)
		}), "1 owner is open")
	})
	t.Run("open before, and dropped", func(t *testing.T) {
		mustFail(t, checked(func(*fake) { kept = nil }))
	})
	t.Run("open, in the C heap", func(t *testing.T) {
		pool := own.NewPool(own.Options{Name: "test.C", CHeap: true, Release: func(any, []uintptr) error { return nil }})
		mustFail(t, checked(func(*fake) { openKept(pool) }), "test.C: 1 owner is open at the end, of 1000 bytes; "+openMade)
		closeKept()
	})
	t.Run("sampled before", func(t *testing.T) {
		own.SetLeakLevel("test.Conn", own.LeaksSampled)
		defer own.SetLeakLevel("test.Conn", own.LeaksOff)
		for range 10_000 {
			openKept(conns)
		}
		mustFail(t, checked(func(*fake) {
			for i, o := range kept {
				if i%2 == 0 {
					o.Close()
				}
			}
			kept = kept[:5000]
		}))
		closeKept()
	})
	t.Run("closed in a later cleanup", func(t *testing.T) {
		mustFail(t, checked(func(f *fake) {
			openKept(conns)
			f.Cleanup(closeKept)
		}))
	})
	t.Run("a pool that is dropped", func(t *testing.T) {
		mustFail(t, checked(func(f *fake) {
			p := newPool("dropped.Pool")
			open(p)
			open(p).Close()
			p = nil
			Collect(f)
			runtime.GC()
		}), "dropped.Pool: 1 owner was released")
	})
	t.Run("a queue", func(t *testing.T) {
		var queue own.Queue
		p := own.NewPool(own.Options{Name: "drained.Pool", Run: queue.Run(), Release: func(any, []uintptr) error { return nil }})
		mustFail(t, checked(func(f *fake) { open(p).Close() }))
		mustFail(t, checked(func(f *fake) {
			open(p)
			Collect(f)
			queue.Drain(0)
		}), "drained.Pool: 1 owner was released")
		queue.Drain(0)
	})
}

func TestOptions(t *testing.T) {
	drop := func(*fake) { open(conns) }
	mustFail(t, checked(drop, AllowCollected("test.*")))
	mustFail(t, checked(drop, AllowCollected("other.*")), "test.Conn")
	mustFail(t, checked(drop, IgnorePool("test.?onn")))
	mustFail(t, checked(drop, IgnorePool("*")))
	keep := func(*fake) { openKept(conns) }
	mustFail(t, checked(keep, AllowCollected("*")), "is open at the end")
	mustFail(t, checked(keep, IgnorePool("test.Conn")))
	closeKept()
	h, err := cheap.NewHeap(cheap.HeapOptions{Name: "test.Heap"})
	testcall.Must(t, err)
	leave := func(*fake) { h.Malloc(100) }
	mustFail(t, checked(leave), "leaktest: heap test.Heap: 1 live block more than before, of 112 bytes")
	mustFail(t, checked(leave, IgnoreHeap("test.*")))
	mustFail(t, checked(func(*fake) { h.Free(h.Malloc(100)) }))
	testcall.Must(t, h.DestroyAll())
	a := pace.NewAccount(pace.AccountOptions{Name: "test.Account"})
	defer a.Close()
	take := func(*fake) {
		if err := a.Add(1000); err != nil {
			panic(err)
		}
	}
	mustFail(t, checked(take), "leaktest: account test.Account: 1000 bytes more than before")
	mustFail(t, checked(take, IgnoreAccount("test.Account")))
	mustFail(t, checked(func(*fake) { a.Remove(2000) }))
	v := fmt.Sprint(testcall.Catch(func() { checked(drop, IgnorePool("[")) }))
	if !strings.Contains(v, `IgnorePool: the pattern "[" is malformed`) {
		t.Error(v)
	}
}

// TestCheckMemory has blocks that need no Close, arenas of the pool, and a group.
func TestCheckMemory(t *testing.T) {
	m := own.NewMemory(nil, own.MemoryOptions{Name: "test.Memory"})
	mustFail(t, checked(func(*fake) {
		for range 1000 {
			if _, err := m.NewBytes(100); err != nil {
				t.Error(err)
			}
		}
		if _, err := m.NewGroup(); err != nil {
			t.Error(err)
		}
		var arenas []*cheap.Arena
		for range 10 {
			a := cheap.GetArena()
			a.Malloc(100_000)
			a.Malloc(100)
			arenas = append(arenas, a)
		}
		for _, a := range arenas {
			a.Put()
		}
	}))
	var b *own.Bytes
	got := checked(func(*fake) { b, _ = m.NewBytes(100) })
	if len(got) != 2 || !strings.Contains(got[0], "heap cheap.Heap: 1 live block more") || !strings.Contains(got[1], "test.Memory: 1 owner is open at the end, of 100 bytes; made by\n") {
		t.Errorf("%q", got)
	}
	b.Close()
	Collect(t)
}

// TestCheckTwice checks a test and a subtest of it, and another test at the same time.
func TestCheckTwice(t *testing.T) {
	mustFail(t, checked(func(f *fake) {
		sub := &fake{name: f.name + "/sub"}
		Check(sub)
		openKept(conns)
		sub.cleanups[0]()
		mustFail(t, sub.failed, "is open at the end")
		closeKept()
		open(conns).Close()
	}))
	mustFail(t, checked(func(f *fake) {
		other := &fake{name: f.name + "2"}
		Check(other)
		other.cleanups[0]()
		mustFail(t, other.failed, "leaktest: Fake is checked at the same time")
	}))
	if len(checks.names) != 0 {
		t.Errorf("%q are checked in the end", checks.names)
	}
}

type tests func() int

func (f tests) Run() int { return f() }

func TestVerifyTestMain(t *testing.T) {
	openKept(conns) // before
	for _, row := range []struct {
		run    func() int
		status int
		says   string
	}{
		{func() int { return 0 }, 0, ""},
		{func() int { return 3 }, 3, ""},
		{func() int { openKept(conns); return 3 }, 3, ""},
		{func() int { openKept(conns); return 0 }, 1, "leaktest: test.Conn: 1 owner is open at the end, of 1000 bytes; made by\n"},
		{func() int { mustFail(t, checked(func(*fake) { open(conns).Close() })); return 0 }, 0, ""},
	} {
		var text strings.Builder
		if status := verify(tests(row.run), &text, nil); status != row.status || !strings.HasPrefix(text.String(), row.says) || row.says == "" && text.Len() > 0 {
			t.Errorf("status %d, %s", status, &text)
		}
	}
	closeKept()
}

// TestForgotten runs tests of which one forgets a Close, in a process of their own. TestLeaksDocument of
// package inspect does so as a developer does.
func TestForgotten(t *testing.T) {
	_, _, line, _ := runtime.Caller(0)
	text, passed := testchild.Test(t, func(t *testing.T) {
		t.Run("Decode", func(t *testing.T) {
			Check(t)
			defer open(conns).Close()
			open(conns)
		})
		t.Run("Closed", func(t *testing.T) {
			Check(t)
			open(conns).Close()
		})
	})
	if testchild.Is() {
		return
	}
	if passed || strings.Count(text, "--- FAIL: TestForgotten/Decode ") != 1 || !strings.Contains(text, "--- PASS: TestForgotten/Closed ") {
		t.Fatal(text)
	}
	at := func(line int) string { return fmt.Sprintf("leaktest_test.go:%d\n", line) }
	if !strings.Contains(text, at(line+5)) || strings.Contains(text, at(line+4)) {
		t.Errorf("the output does not name what was forgotten, or names what is closed:\n%s", text)
	}
}

// TestCollect waits for what is dropped.
func TestCollect(t *testing.T) {
	testcall.Aside(func() {
		for range 1000 {
			open(conns)
		}
	})
	Collect(t)
	if n := conns.Stats().Live; n != 0 {
		t.Errorf("%d are open", n)
	}
	testcall.Want(t, conns.CloseWait(context.Background()))
	conns = newPool("test.Conn")
}
