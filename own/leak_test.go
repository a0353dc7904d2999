package own

import (
	"errors"
	"fmt"
	"testing"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
)

// TestLeakTurnsAutomaticReleaseOff sets CHEAP_OWN: forgotten owners are not
// released. Close and the rest work as usual.
func TestLeakTurnsAutomaticReleaseOff(t *testing.T) {
	for name, f := range map[string]func(w *world){
		"forget": func(w *world) {
			p, q := w.pool(Options{}), w.pool(Options{Run: new(Queue).Run()})
			testcall.Aside(func() {
				for range 1000 {
					w.own(t, p, 16)
					w.own(t, q, 16)
				}
				w.ownUnder(t, p, w.own(t, p, 1<<20), 16)
			})
			for range few {
				settle(t)
			}
			if n := w.died.Load(); n != 0 || q.Stats().Queued != 0 {
				fmt.Println(n, "are released,", q.Stats().Queued, "queued;")
			}
			var e *CloseError
			if err := p.CloseWait(waiting(0)); !errors.As(err, &e) || e.NeverClosed != 1002 {
				fmt.Println(err)
			}
			if err := q.CloseWait(waiting(0)); !errors.As(err, &e) || e.NeverClosed != 1000 || e.Queued != 1000 {
				fmt.Println(err)
			}
			drainPool(q, 0)
		},
		"close": func(w *world) {
			p := w.pool(Options{})
			m := w.own(t, p, 16)
			child := w.ownUnder(t, p, m, 16)
			child.Use(func(unsafe.Pointer) {
				m.Close()
				child.Close()
			})
			if m.cell.alive() || child.cell.alive() {
				fmt.Println("Close does not release;")
			}
			if err := p.CloseWait(waiting(0)); err != nil {
				fmt.Println(err)
			}
		},
		"stock": func(w *world) {
			f := &factory{w: w}
			p := f.pool(Options{})
			f.make(t, p).Close()
			for range few {
				gc(t)
			}
			if n := w.died.Load(); n != 1 {
				fmt.Println(n, "are released, and one was closed;")
			}
			p.CloseWait(waiting(0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, row := range []struct {
				env  string
				says bool
			}{{"CHEAP_OWN=leak", false}, {"CHEAP_OWN=", name == "forget" || name == "stock"}} {
				out, status := testchild.Run(t, func() {
					w := newWorld(t, 5000)
					f(w)
					if n := w.alive(); n != 0 || len(w.wrong) != 0 {
						fmt.Println(n, "are alive in the end;", w.wrong)
					}
				}, row.env)
				if (out != "") != row.says || status != 0 {
					t.Errorf("%s: status %d, output:\n%s", row.env, status, out)
				}
			}
		})
	}
}
