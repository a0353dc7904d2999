//go:build cgo && unix

// Package ways measures how long the ways take that the advice of explain compares: those in
// which Go programs release what they forget.
package ways

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/internal/test/cside"
	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// An object has room for what it owns and a word of the binding: the cost of a cleanup depends
// on the size.
type object struct {
	block unsafe.Pointer
	_     uintptr
}

// What is made last escapes.
var (
	plain *object
	owned *own.Handle[unsafe.Pointer]

	//lint:ignore U1000 it is only assigned to, so that what is assigned escapes
	memory *own.Mem[[cside.BlockSize]byte]
)

// A way makes one object and drops it. left returns how many are not released.
type way struct {
	name string // as a row of the table release of the module lab
	make func() error
	left func() int
}

func all() []way {
	pool := own.NewPool(own.Options{Name: "explain.block", Release: libc.Destructor(cside.DestroyBlock, libc.NoCallback), Size: cside.BlockSize})
	blocks := own.NewMemory(nil, own.MemoryOptions{Name: "explain.memory"})
	made := 0
	return []way{
		{"addcleanup", func() error {
			plain = &object{block: cside.CreateBlock()}
			runtime.AddCleanup(plain, cside.Destroy, plain.block) //cheapvet:ignore perobject it is what own is compared with
			return nil
		}, live},
		{"finalizer", func() error {
			plain = &object{block: cside.CreateBlock()}
			runtime.SetFinalizer(plain, func(o *object) { cside.Destroy(o.block) }) //cheapvet:ignore perobject it is what own is compared with
			return nil
		}, live},
		{"own-forget", func() error {
			owned = new(own.Handle[unsafe.Pointer])
			return owned.Own(pool, cside.CreateBlock(), cside.BlockSize)
		}, live},
		{"own-memory", func() (err error) {
			made++
			memory, err = own.NewMem[[cside.BlockSize]byte](blocks)
			return err
		}, func() int { return made - int(blocks.Stats().Collected) }},
	}
}

// live returns how many blocks of C are live.
func live() int {
	c := cside.Count()
	return int(c.Created - c.Destroyed)
}

// Measure returns nanoseconds for each object, by names of the module lab: release/addcleanup. A
// round has the objects, from the first to the release of the last, and at least ten
// collections if they are 500,000. The figures are medians of the rounds, in which the ways take
// turns. Nothing else may run in the process.
func Measure(ctx context.Context, objects, rounds int) (map[string]float64, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	ways, ns := all(), map[string]float64{}
	times := make([][]float64, len(ways))
	for round := range rounds + 1 { // the first one warms up
		for i, w := range ways {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			took, err := w.round(objects)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
			if round > 0 {
				times[i] = append(times[i], float64(took.Nanoseconds())/float64(objects))
			}
		}
	}
	for i, w := range ways {
		slices.Sort(times[i])
		ns["release/"+w.name] = times[i][len(times[i])/2]
	}
	return ns, nil
}

// round makes objects, drops them, and collects until all are released.
func (w way) round(objects int) (time.Duration, error) {
	start := time.Now()
	for range objects {
		if err := w.make(); err != nil {
			return 0, err
		}
	}
	plain, owned, memory = nil, nil, nil
	for {
		runtime.GC()
		for wait := 20 * time.Microsecond; wait < 2*time.Millisecond; wait *= 2 {
			if w.left() == 0 {
				return time.Since(start), nil
			}
			time.Sleep(wait)
		}
		if left := w.left(); time.Since(start) > time.Minute {
			return 0, fmt.Errorf("%d objects were not released in a minute", left)
		}
	}
}
