package replay

import (
	"errors"
	"runtime"
	"runtime/debug"

	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/replay/resident"
	"github.com/cheapgo/cheap/internal/replay/trace"
)

const (
	// sampleEvery is the least number of operations between two samples.
	sampleEvery = 64
	// samples is about the number of samples of a long trace. Each sample walks
	// the page tables of the process.
	samples = 1024
	// sampleSize is the size from which on an operation is followed by a sample.
	sampleSize = 64 << 10
)

// A Memory is what a trace kept resident on an allocator, in bytes above what the
// process had before the allocator was opened. It counts memory that belongs to
// no file: pages of code, which the first call of a function brings in, are not
// the allocator's.
type Memory struct {
	Peak  int64 // the most that a sample saw, that of Final included
	Final int64 // after every block was freed and the allocator trimmed
}

// MeasureMemory replays a trace and samples the resident memory of this process, at
// the same operations for all allocators. It does not see memory that one call takes
// and releases again.
//
// It is for a process that does nothing else, before or at the same time. The error
// is [errors.ErrUnsupported] if the system does not report resident memory.
func MeasureMemory(tr *trace.Trace, info peers.Info) (m Memory, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The traces are of one thread. Each sample is a system call that may be long
	// enough for the scheduler to take the P of this goroutine away, and give it
	// another P afterwards. Allocators with a cache for each P would fill two.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))

	slots := newSlots(tr.Slots)
	rest := frees(tr.Ops, tr.Slots)
	res, err := resident.Self()
	if err != nil {
		return Memory{}, err
	}
	defer func() { err = errors.Join(err, res.Close()) }()

	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	debug.FreeOSMemory() // otherwise the scavenger would do it between two samples
	before, err := res.Bytes()
	if err != nil {
		return Memory{}, err
	}

	p, err := info.Open(tr.Slots)
	if err != nil {
		return Memory{}, err
	}
	most := before
	every := max(sampleEvery, len(tr.Ops)/samples)
	for done := 0; done < len(tr.Ops); {
		n := stretch(tr.Ops[done:], every)
		if failed := p.Replay(tr.Ops[done:done+n], slots); failed != nil {
			return Memory{}, outOfMemory(info.Name, tr.Ops, failed)
		}
		done += n
		now, err := res.Bytes()
		if err != nil {
			return Memory{}, err
		}
		most = max(most, now)
	}

	if len(rest) > 0 {
		p.Replay(rest, slots)
	}
	if err := p.Trim(); err != nil {
		return Memory{}, err
	}
	after, err := res.Bytes()
	if err != nil {
		return Memory{}, err
	}
	return Memory{Peak: max(most, after) - before, Final: after - before}, p.Close() // Trim may need some
}

// stretch returns the number of operations up to the next sample.
func stretch(ops []trace.Op, every int) int {
	ops = ops[:min(every, len(ops))]
	for i := range ops {
		if ops[i].Size >= sampleSize {
			return i + 1
		}
	}
	return len(ops)
}
