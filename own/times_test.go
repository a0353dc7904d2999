//go:build cheap_times && unix

package own

import (
	"context"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// processor returns the processor time of the process so far.
func processor() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestTimeWaiting measures the processor time that both CloseWait and Flush take while they
// wait: for two seconds at most 20 ms, ten times what is promised because other goroutines of
// the process may run, and for an hour in a bubble at most a second, likewise.
func TestTimeWaiting(t *testing.T) {
	for name, await := range map[string]func(p *Pool, o *object) error{
		"CloseWait": func(_ *Pool, o *object) error { return o.CloseWait(context.Background()) },
		"Pool.CloseWait": func(p *Pool, o *object) error {
			o.Close()
			return p.CloseWait(context.Background())
		},
		"Flush": func(p *Pool, o *object) error {
			o.Close()
			return Flush(context.Background())
		},
	} {
		wait := func(t *testing.T, d time.Duration) {
			p := NewPool(Options{Run: queuedIf(name == "Flush"), Release: released(func([]uintptr) {})})
			var o object
			var x byte
			testcall.Must(t, o.Own(p, unsafe.Pointer(&x), 16))
			in := make(chan struct{})
			go func() {
				o.Use(func(unsafe.Pointer) {
					close(in)
					if name != "Flush" {
						time.Sleep(d)
					}
				})
				if name == "Flush" {
					o.Close()
					time.Sleep(d)
					drainPool(p, 0)
				}
			}()
			if <-in; name == "Flush" {
				o.Close()
			}
			if err := await(p, &o); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		before := processor()
		wait(t, 2*time.Second)
		if took := processor() - before; took > 20*time.Millisecond {
			t.Errorf("%s takes %v of processor time in two seconds", name, took)
		} else {
			t.Logf("%s: %v in two seconds", name, took)
		}
		before = processor()
		synctest.Test(t, func(t *testing.T) { wait(t, time.Hour) })
		if took := processor() - before; took > time.Second {
			t.Errorf("%s takes %v of processor time in an hour of a bubble", name, took)
		} else {
			t.Logf("%s: %v in an hour of a bubble", name, took)
		}
	}
}
