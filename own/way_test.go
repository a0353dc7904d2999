package own

import (
	"slices"
	"testing"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/percpu"
	"github.com/cheapgo/cheap/internal/race"
	"github.com/cheapgo/cheap/internal/testchild"
	"github.com/cheapgo/cheap/internal/testtrace"
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

	"github.com/cheapgo/cheap/internal/testtrace/record"
	"github.com/cheapgo/cheap/own"
)

const size = 4 // of a batch

var released = make(chan int, 100)

func release(_ any, resources []uintptr) error {
	released <- len(resources)
	return nil
}

func newPool() *own.Pool { return own.NewPool(own.Options{Batch: size, Release: release}) }

// fill makes a full batch, whose owners are forgotten, and returns the owner in the next one.
func fill(p *own.Pool) *own.Owner {
	var resource byte
	for range size {
		p.Own(new(own.Owner), unsafe.Pointer(&resource), 100)
	}
	last := new(own.Owner)
	p.Own(last, unsafe.Pointer(&resource), 100)
	return last
}

func fillAside(p *own.Pool) *own.Owner {
	last := make(chan *own.Owner)
	go func() { last <- fill(p) }()
	return <-last
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
	fillAside(newPool()) // what is done once in a program is done here
	collect(size + 1)
	last := fillAside(newPool())
	record.Begin()
	runtime.GC()
	<-released
	own.Flush(context.Background())
	record.End()
	runtime.KeepAlive(last)
}
`

// TestWay follows forgotten owners on their way to their release, and counts how often it
// leads from one package to another.
func TestWay(t *testing.T) {
	if race.Build || percpu.Portable || osmem.GoBacked || testchild.Emulated() {
		return // the program is built without tags and for this processor, so it is the same one
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
	for _, way := range []struct {
		name              string
		calls             []testtrace.Call
		mostCalls, mostTo int // from package to package, and to package batch
	}{
		{"the open batch is sealed", seal, 13, 2},
		{"the other one is released", release, 26, 16},
	} {
		toBatch := 0
		for _, c := range way.calls {
			t.Log(c[1], "->", c[0])
			if testtrace.Package(c[0]) == "own/internal/batch" {
				toBatch++
			}
		}
		t.Logf("%s: %d calls from package to package, %d of them to package batch", way.name, len(way.calls), toBatch)
		if n := len(way.calls); n == 0 || n > way.mostCalls || toBatch > way.mostTo {
			t.Errorf("%s: at most %d and %d are expected", way.name, way.mostCalls, way.mostTo)
		}
	}
}
