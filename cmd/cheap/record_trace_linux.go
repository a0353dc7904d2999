//go:build amd64 || arm64

package main

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap/cmd/cheap/internal/shared"
	"github.com/cheapgo/cheap/cmem/fht"
	"github.com/cheapgo/cheap/internal/replay/trace"
)

// mostMovable bounds the calls of Go code that are replayed at the end.
const mostMovable = 2_000_000

// A traced is a trace that is written while the program runs.
type traced struct {
	file   *os.File
	writer *fht.Writer
	shared *shared.File
	ended  chan bool
	done   chan error

	sizes      []uint64 // by slot
	live, peak uint64   // bytes in use, and the most

	movable []trace.Op // the first calls for blocks that Go code has asked for by itself
	calls   int        // all mallocs of these
	bytes   uint64     // of these
}

// startTrace begins to write what the program will record.
func startTrace(name string, from *shared.File) (*traced, error) {
	file, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	writer, err := fht.NewWriter(file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	t := &traced{file: file, writer: writer, shared: from, ended: make(chan bool), done: make(chan error, 1)}
	go func() { t.done <- t.read() }()
	return t, nil
}

// read reads events from when the library has begun until the program has ended.
func (t *traced) read() error {
	for ended := false; !t.shared.Started(); {
		if ended {
			return nil // and the report says why
		}
		select {
		case <-t.ended:
			ended = true
		case <-time.After(time.Millisecond):
		}
	}
	if t.shared.Off() != "" {
		return nil
	}
	ring, err := t.shared.Ring()
	if err != nil {
		return err
	}
	r := fht.Read(ring, t.add)
	<-t.ended
	if !r.Stop() && atomic.LoadUint64(ring.Over) != 0 {
		return fmt.Errorf("the trace is cut short after %d calls: they came faster than they could be read", t.writer.Ops())
	}
	return nil // threads that have ended with the program may have left out their last calls
}

func (t *traced) add(op fht.Op) {
	t.writer.Write(op)
	for int(op.Slot) >= len(t.sizes) {
		t.sizes = append(t.sizes, 0)
	}
	t.live += op.Size - t.sizes[op.Slot] // the size of a block that is free is 0
	t.sizes[op.Slot] = op.Size
	t.peak = max(t.peak, t.live)
	if !op.Marked {
		return
	}
	if op.Kind != fht.Free && op.Kind != fht.Realloc {
		t.calls++
		t.bytes += op.Size
	}
	if len(t.movable) < mostMovable {
		t.movable = append(t.movable, trace.Op{
			Size: int(op.Size), Slot: op.Slot, Kind: trace.Kind(op.Kind), AlignLog: op.AlignLog, Thread: op.Thread, Touch: op.Size != 0,
		})
	}
}

// stop writes the trace. The program has ended.
func (t *traced) stop() error {
	close(t.ended)
	err := <-t.done
	var threads uint64
	if t.shared.Started() {
		threads = t.shared.Threads()
	}
	return errors.Join(err, t.writer.Close(threads), t.file.Close())
}
