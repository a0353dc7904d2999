package replay

import (
	"errors"
	"runtime"
	"runtime/debug"

	"github.com/cheapgo/cheap/cmd/cheap/internal/peers"
	"github.com/cheapgo/cheap/cmd/cheap/internal/trace"
)

// Memory is what a trace kept resident on an allocator, in bytes above what the
// process had before the allocator was opened. It counts memory that belongs to
// no file: pages of code, which the first call of a function brings in, are no
// allocator's doing.
type Memory struct {
	Peak  int64 // the most that a sample saw
	Final int64 // once every block was freed and the allocator trimmed
}

const (
	// sampleEvery is how many operations lie between two samples at least.
	sampleEvery = 64
	// samples is about how many a long trace gets. Each walks the page tables
	// of the process.
	samples = 1024
	// sampleSize is from what size on an operation gets a sample of its own.
	sampleSize = 64 << 10
)

// MeasureMemory replays a trace and samples the resident memory of this
// process, at the same operations whatever the allocator. What a single call
// holds and gives up again is not seen.
//
// It is for a process that does nothing else, before or beside it. The error is
// [errors.ErrUnsupported] where the system does not tell what is resident.
func MeasureMemory(tr *trace.Trace, info peers.Info) (m Memory, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// The traces are of one thread. Each sample is a system call, long enough
	// for the scheduler to hand this goroutine's P to nobody and give it
	// another one, so that allocators with a cache for each P would fill two.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))

	slots := newSlots(tr.Slots)
	rest := frees(tr.Ops, tr.Slots)
	res, err := openResident()
	if err != nil {
		return Memory{}, err
	}
	defer func() { err = errors.Join(err, res.close()) }()

	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	debug.FreeOSMemory() // or the scavenger would do it between two samples
	before, err := res.bytes()
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
		now, err := res.bytes()
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
	after, err := res.bytes()
	if err != nil {
		return Memory{}, err
	}
	return Memory{Peak: most - before, Final: after - before}, p.Close()
}

// stretch returns how many operations there are up to the next sample.
func stretch(ops []trace.Op, every int) int {
	ops = ops[:min(every, len(ops))]
	for i := range ops {
		if ops[i].Size >= sampleSize {
			return i + 1
		}
	}
	return len(ops)
}
