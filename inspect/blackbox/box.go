package blackbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cheapgo/cheap"
)

// # The files
//
//	box.go       Start, Stop
//	watcher.go   a look: it writes records, and tells when the limit is near
//	schedule.go  when a record is written, and when there is a notice
//	gather.go    what a record has
//	report.go    records
//	format.go    the bytes of the file
//	file.go      the file, and reading it
//	lock_….go    one process for a file
//	text.go      a report for people
//	charge.go    what the container is charged

// Options configure [Start].
type Options struct {
	// File is the path of the black box. "" writes none, and leaves the notice. Each process needs a
	// path of its own: one that several share is an error that wraps [ErrBusy]. A file that is there
	// is overwritten if it is a black box. If its process has ended without Stop, it is first copied to
	// the path with .previous behind it.
	File string

	// Every is the time between two records; 0 means a second. While the charge of the container grows fast
	// there are more, up to one percent of the time. While it does not change there is one in eight times Every.
	Every time.Duration

	// Near says when the limit of the container is near: when the container is charged that share of
	// it, less files that the kernel has cached and drops before it kills. It is 1 at most; 0 means 0.9,
	// and a negative number that there is no notice. A container without a limit has none.
	Near float64

	// OnNear is called when the limit is near, in a goroutine of its own, once in a minute at most, and again
	// only after the charge has fallen by a tenth of the limit. The record is the function's to keep. If OnNear
	// is nil, its Line is written to the standard error.
	OnNear func(*Record)
}

const (
	defaultEvery = time.Second
	leastEvery   = 10 * time.Millisecond
	defaultNear  = 0.9
	never        = 1e9 // no charge is so large a share of a limit
)

var (
	// ErrBusy is wrapped by the error of [Start] if another process writes to the file.
	ErrBusy = errors.New("the file is in use")

	// ErrStarted is returned by [Start] if it was called before, without a Stop since.
	ErrStarted = errors.New("cheap: blackbox was started already")
)

// started says that a box runs. There is one at a time.
var started struct {
	sync.Mutex
	is bool
}

// A Box is a black box that is written. Its methods may be called by any goroutine.
type Box struct {
	process  Process
	previous *Report
	over     chan struct{} // closed by Stop
	stopped  sync.Once
	stopErr  error
	tasks    sync.WaitGroup

	mu sync.Mutex // the rest is under it
	watcher
}

// Start begins to write a black box, and writes the first record. It is called once, by main. It panics
// with a [cheap.MisuseError] if Options.Every is negative or below 10 ms, or Options.Near above 1. An error leaves nothing behind: the
// file cannot be made or is something else, another process writes to it, or Start was called before.
func Start(o Options) (*Box, error) {
	switch {
	case o.Every == 0:
		o.Every = defaultEvery
	case o.Every < leastEvery:
		panic(&cheap.MisuseError{Op: "blackbox.Start", Reason: fmt.Sprintf("Options.Every is %v; the least is %v", o.Every, leastEvery)})
	}
	switch {
	case o.Near == 0:
		o.Near = defaultNear
	case o.Near < 0:
		o.Near = never
	case !(o.Near <= 1): // a NaN is not, either
		panic(&cheap.MisuseError{Op: "blackbox.Start", Reason: fmt.Sprintf("Options.Near is %v; it is a share of the limit, 1 at most", o.Near)})
	}
	started.Lock()
	defer started.Unlock()
	if started.is {
		return nil, ErrStarted
	}
	b, err := newBox(o, &live{root: "/"})
	if err != nil {
		return nil, err
	}
	started.is = true
	b.tasks.Go(b.run)
	return b, nil
}

// newBox makes the file and writes the first record.
func newBox(o Options, s sources) (*Box, error) {
	b := &Box{process: thisProcess(), over: make(chan struct{})}
	b.watcher = watcher{schedule: newSchedule(o.Every, o.Near), sources: s, onNear: o.OnNear, telling: new(atomic.Bool)}
	if o.File == "" {
		return b, nil
	}
	var err error
	if b.file, b.previous, err = create(o.File, b.process); err != nil {
		return nil, err
	}
	if err := b.Record(); err != nil {
		return nil, errors.Join(err, b.file.close())
	}
	return b, nil
}

func thisProcess() Process {
	name := os.Args[0]
	if exe, err := os.Executable(); err == nil {
		name = exe
	}
	return Process{
		Program: filepath.Base(name), PID: os.Getpid(), Go: runtime.Version(),
		System: runtime.GOOS + "/" + runtime.GOARCH, Started: time.Now(),
	}
}

// Previous returns the report of the process that has written the file before, if that process has ended
// without Stop, and else nil. It is for a program that sends such a report to where errors are collected.
func (b *Box) Previous() *Report { return b.previous }

// Err returns why the last record could not be written, as when the disk is full, or nil. The record before
// is still in the file, and the next one is tried.
func (b *Box) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// Record writes a record now, such as after an error that wraps [cheap.ErrLimit]. It takes well below a
// millisecond in most programs. After Stop it does nothing.
func (b *Box) Record() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.record(false)
	return b.err
}

// Stop writes a last record, which says that the program has ended in order, and ends the goroutine. It
// returns the error of that record. A second call does nothing, and returns the same.
func (b *Box) Stop() error {
	b.stopped.Do(func() {
		close(b.over)
		b.tasks.Wait()
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.file != nil {
			b.record(true)
			b.stopErr = errors.Join(b.err, b.file.close())
		}
		b.closed = true
		started.Lock()
		defer started.Unlock()
		started.is = false
	})
	return b.stopErr
}

// run looks until Stop.
func (b *Box) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-b.over:
			return
		case <-timer.C:
		}
		timer.Reset(b.look())
	}
}

// look looks once, and returns when to look again.
func (b *Box) look() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.watcher.look()
	return b.pause
}
