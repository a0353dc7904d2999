package own

import (
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/mem/osmem"
	"github.com/cheapgo/cheap/internal/mem/percpu"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testenv"
	"github.com/cheapgo/cheap/internal/test/testtrace"
)

// forgetting is a program that forgets the owners of a batch that is full, and records the
// calls of the collection that finds them. Another batch is open, which the collection
// seals. On one P the order of the calls is always the same.
const forgetting = `package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/testtrace/record"
	"github.com/cheapgo/cheap/own"
)

const size = 4 // of a batch

var released = make(chan int, 100)

func release(_ any, resources []uintptr) error {
	released <- len(resources)
	return nil
}

// fill makes the owners of two batches, the first of which is sealed, and returns those of
// the second one.
func fill(p *own.Pool) (open []*own.Handle[unsafe.Pointer]) {
	done := make(chan bool)
	go func() { // so that nothing stays on this stack
		var resource byte
		for i := range 2 * size {
			o := new(own.Handle[unsafe.Pointer])
			o.Own(p, unsafe.Pointer(&resource), 100)
			if i >= size {
				open = append(open, o)
			}
		}
		close(done)
	}()
	<-done
	return open
}

func collect(releases int) {
	for releases > 0 {
		runtime.GC()
		own.Flush(context.Background())
		for len(released) > 0 {
			releases -= <-released
		}
	}
}

func main() {
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(1)
	p := own.NewPool(own.Options{Batch: size, Release: release})
	fill(p) // what is done once in a program, or for a pool, is done here
	collect(2 * size)
	open := fill(p)
	record.Begin()
	runtime.GC()
	<-released
	own.Flush(context.Background())
	record.End()
	runtime.KeepAlive(open)
}
`

// TestWay follows forgotten owners on their way to their release, and compares the calls
// from one package to another with the lists in internal/batch/way.go.
func TestWay(t *testing.T) {
	if race.Build || percpu.Portable || osmem.GoBacked || testenv.Emulated() || testenv.NoGo() {
		return // the program is built without tags and for this processor, so it is the same one, or cannot be built
	}
	var seal, release []testtrace.Call
	for _, c := range testtrace.Run(t, forgetting) {
		switch {
		case !c.Crosses() || slices.Contains(c, "main.main"):
		case slices.Contains(c, "own/internal/intake.sealOpened"):
			seal = append(seal, c)
		default:
			release = append(release, c)
		}
	}
	text, err := os.ReadFile("internal/batch/way.go")
	testcall.Must(t, err)
	_, listA, _ := strings.Cut(string(text), "// A. ")
	listA, listB, _ := strings.Cut(listA, "// B. ")
	for _, way := range []struct {
		name, list string
		calls      []testtrace.Call
		toBatch    int
	}{
		{"A", listA, seal, 1},
		{"B", listB, release, 2},
	} {
		var got []string
		toBatch := 0
		for _, c := range way.calls {
			t.Log(way.name, c[1], "->", c[0])
			got = append(got, strings.TrimSuffix(path.Base(c[0]), "[...]"))
			if testtrace.Package(c[0]) == "own/internal/batch" {
				toBatch++
			}
		}
		var want []string
		for _, step := range regexp.MustCompile(`(?m)^//\t *(\d+) +(\S+)`).FindAllStringSubmatch(way.list, -1) {
			if want = append(want, step[2]); step[1] != fmt.Sprint(len(want)) {
				t.Errorf("%s: step %s is number %d", way.name, step[1], len(want))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("the list %s has other steps than the program:\n%s\nwant\n%s", way.name, strings.Join(want, "\n"), strings.Join(got, "\n"))
		}
		if toBatch != way.toBatch {
			t.Errorf("%s: package batch is entered %d times, want %d", way.name, toBatch, way.toBatch)
		}
	}
}
