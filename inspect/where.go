package inspect

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/watch/resident"
	"github.com/cheapgo/cheap/internal/watch/sample"
)

// A Report says what holds the memory of the program outside the Go heap.
type Report struct {
	Verdict  Verdict      // what holds it, in a sentence; empty while another goroutine reads
	Accounts []AccountUse // the accounts that hold the most, the largest first
	Places   []Place      // the stacks with the most bytes in use, the largest first; see SetRate
}

// An AccountUse is an account with what it holds.
type AccountUse struct {
	Name  string
	Held  int64 // bytes
	Limit int64 // the account's own bound on Held, or 0
}

// A Place is a stack that has allocated blocks of heaps.
type Place struct {
	Live  int64 // bytes in use, an estimate
	Stack []runtime.Frame
}

// Where returns the n accounts that hold the most, and the n stacks with the most bytes in
// use. It is for the moment when memory runs out: after an error that wraps cheap.ErrLimit,
// after a nil, or in HeapOptions.OnLimit. It takes well below a millisecond, does not stop the
// world, and allocates a few KiB. Without [SetRate] there are no stacks.
func Where(n int) Report {
	var r Report
	if n <= 0 {
		return r
	}
	_, v := resident.Process.TryJudge(resident.Options{})
	r.Verdict = verdictOf(v)
	for _, u := range account.Process.Largest(n) {
		r.Accounts = append(r.Accounts, AccountUse{Name: u.Name, Held: u.Held, Limit: u.Limit})
	}
	for _, top := range sample.Top(n) {
		r.Places = append(r.Places, Place{Live: int64(top.Live), Stack: framesOf(top.PCs)})
	}
	return r
}

// framesOf returns the frames of a stack, from the caller of this module on.
func framesOf(pcs []uintptr) []runtime.Frame {
	var all []runtime.Frame
	if len(pcs) == 0 {
		return nil
	}
	for frames := runtime.CallersFrames(pcs); ; {
		f, more := frames.Next()
		if f.Function != "" && (len(all) > 0 || !isOurs(f.Function)) {
			all = append(all, f)
		}
		if !more {
			return all
		}
	}
}

// String lists the report: the verdict, a line for each account, and for each stack its bytes and its five
// innermost calls.
func (r Report) String() string {
	var b strings.Builder
	if r.Verdict.Sentence != "" {
		fmt.Fprintln(&b, r.Verdict)
	}
	for _, a := range r.Accounts {
		fmt.Fprintf(&b, "%s holds %s", a.Name, bytesText(a.Held))
		if a.Limit != 0 {
			fmt.Fprintf(&b, " of %s", bytesText(a.Limit))
		}
		b.WriteString("\n")
	}
	for _, p := range r.Places {
		fmt.Fprintf(&b, "about %s in use were allocated by\n", bytesText(p.Live))
		for _, f := range p.Stack[:min(5, len(p.Stack))] {
			fmt.Fprintf(&b, "\t%s\n\t\t%s:%d\n", f.Function, f.File, f.Line)
		}
	}
	return b.String()
}

// bytesText writes a number of bytes with three digits and a unit.
func bytesText(n int64) string {
	x, unit := float64(n), "B"
	for _, u := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if x < 1000 && x > -1000 {
			break
		}
		x, unit = x/1024, u
	}
	if unit == "B" {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.3g %s", x, unit)
}
