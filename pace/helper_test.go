package pace

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/mem/race"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/own"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// long makes tests run in full; by default they do a part.
var long = flag.Bool("pace.long", false, "run the tests of resident memory at full size and length")

// scaled returns n, or short if tests are to be short.
func scaled(n, short int) int {
	if *long {
		return n
	}
	return short
}

// start is Start for the time of a test.
func start(t testing.TB, o Options) *pacer {
	t.Helper()
	testcall.Must(t, Start(o))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%+v", ReadStats())
		}
		Stop()
	})
	return current.Load()
}

// mustMisuse wants f to panic with a MisuseError that says what is wrong.
func mustMisuse(t *testing.T, says string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		v := recover()
		if m, ok := v.(*cheap.MisuseError); !ok || !strings.HasPrefix(m.Error(), "cheap: "+says) {
			t.Errorf("panic value %v, want a MisuseError that begins with %q", v, "cheap: "+says)
		}
	}()
	f()
}

// newAccount returns an account that is closed when the test ends.
func newAccount(t testing.TB, o AccountOptions) *Account {
	a := NewAccount(o)
	t.Cleanup(func() { a.Close() })
	return a
}

// bear changes how long goroutines wait for others, for the time of a test. It is called
// before start.
func bear(t testing.TB, f func(p *patience)) {
	was := longest
	t.Cleanup(func() { longest = was })
	f(&longest)
}

// usual is everyone's patience without tests.
var usual = longest

// In tests a collection waits long for its releases, also in examples: a machine that is busy
// may be late with them. It does not wait for ever, because the end of a sweep may not be
// reported. With the race detector nothing else ends the wait, so it is as usual there.
func init() {
	if !race.Build {
		longest.drain, longest.stuck = 5*time.Second, 5*time.Second
	}
}

// What these tests take is not resident, or in a process with other tests. So a limit is about what
// is counted, as on systems that do not say what is resident, but for tests that call byKernel.
func init() {
	kernelProcess, kernelCgroup = openProcess, openCgroup
	openProcess = func(*atomic.Int64) usage { return nil }
	openCgroup = func(*atomic.Int64) (usage, error) { return nil, nil }
}

var (
	kernelProcess func(*atomic.Int64) usage
	kernelCgroup  func(*atomic.Int64) (usage, error)
)

// byKernel has limits be about what the kernel counts, in a child.
func byKernel() { openProcess, openCgroup = kernelProcess, kernelCgroup }

// patient has goroutines that take memory wait for collections, however busy the machine is.
// What is held at a time does not depend on that then.
func patient(p *patience) {
	p.bound, p.loose = time.Hour, time.Hour
	p.stuck = p.drain
}

// waitIn waits until a goroutine waits for a mutex in a function, or done reports true.
func waitIn(t *testing.T, function string, done func() bool) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	testwait.Until(t, "a goroutine waits for a lock in "+function, func() bool {
		for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
			if strings.Contains(stack, "sync.(*Mutex).Lock") && strings.Contains(stack, function) {
				return true
			}
		}
		return done()
	})
}

// settled waits until no collection is under way, nor its releases.
func settled(t testing.TB, p *pacer) {
	t.Helper()
	testwait.Until(t, "the collection to end", func() bool { s := p.state(); return s != collecting && s != draining })
	p.mu.Lock() // who has ended it sets the bounds
	defer p.mu.Unlock()
}

// paced waits until this package has started a collection, and it has ended. One that the runtime has
// begun may have taken the mark after the account's last bytes: then more have to come.
func paced(t testing.TB, p *pacer, a *Account) {
	t.Helper()
	testwait.Until(t, "a collection", func() bool { return ReadStats().Cycles > 0 || a.Add(mib) != nil })
	settled(t, p)
}

// auto returns how many bytes a collection could free.
func auto() int64 {
	n, _ := account.Process.Reclaimable()
	return n
}

// An outcome is a child's report of its work.
type outcome struct {
	Resident int64 // bytes: the highest less what there was at the start
	GCs      int64 // collections during the work, whatever started them
	Elapsed  time.Duration
	Longest  time.Duration // of one request
	Cycles   int64         // the most that were started for one request
	Failed   int           // requests that were refused
	Done     int           // those that were not
	Wrong    []string
	Share    float64 // of the time of all processors, in collections
	Stats    Stats
}

// inChild runs f in a child process and returns its outcome; there, inChild does
// not return. before is called in the parent with the command before it starts. The test
// runs beside others that are in a child.
func inChild(t *testing.T, f func() outcome, before ...func(*exec.Cmd)) outcome {
	t.Helper()
	testchild.Main(t, func() {
		if err := json.NewEncoder(os.Stdout).Encode(f()); err != nil {
			panic(err)
		}
	})
	t.Parallel()
	var args []string
	if *long {
		args = append(args, "-pace.long")
	}
	cmd := testchild.Command(t, args...)
	var errors strings.Builder
	cmd.Stderr = &errors
	for _, f := range before {
		f(cmd)
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the child: %v\n%s%s", err, out, errors.String())
	}
	var o outcome
	if err := json.Unmarshal(out, &o); err != nil {
		t.Fatalf("the child printed %q: %v", out, err)
	}
	for _, w := range o.Wrong {
		t.Error(w)
	}
	return o
}

// A buffer is a binding's type.
type buffer struct{ h own.Handle[unsafe.Pointer] }

func (m *buffer) Close() error { return m.h.Close() }

// buffers makes them: blocks of a heap that own gives back.
type buffers struct {
	heap *cheap.Heap
	pool *own.Pool
}

func newBuffers() *buffers {
	h, err := cheap.NewHeap(cheap.HeapOptions{})
	if err != nil {
		panic(err)
	}
	return &buffers{h, own.NewPool(own.Options{Name: "buffer", Release: func(_ any, resources []uintptr) error {
		for _, r := range resources {
			h.Free(cheap.Pointer(r))
		}
		return nil
	}})}
}

// make returns a buffer, all of which is written.
func (b *buffers) make(size int) *buffer {
	p, err := b.heap.TryMalloc(size)
	if err != nil {
		panic(err)
	}
	fill(p, size)
	m := new(buffer)
	if err := m.h.Own(b.pool, p, size); err != nil {
		panic(err)
	}
	return m
}

// fill writes every byte, as fast as may be.
func fill(p unsafe.Pointer, size int) { fillBytes(unsafe.Slice((*byte)(p), size)) }

func fillBytes(b []byte) { writer(b) }

// writer writes every byte. clear is the fastest that there is; in a benchmark, a
// loop of Go takes its place.
var writer = func(b []byte) { clear(b) }

func loop(b []byte) {
	for i := range b {
		b[i] = byte(i)
	}
}

// churn makes n buffers of size bytes, of which 8 are live at a time.
func (b *buffers) churn(n, size int) {
	var live [8]*buffer
	for i := range n {
		live[i%8] = b.make(size)
	}
	runtime.KeepAlive(live)
}

// grow makes megabytes of buffers of size bytes that all stay.
func (b *buffers) grow(megabytes, size int) []*buffer {
	live := make([]*buffer, 0, megabytes*mib/size)
	for range cap(live) {
		live = append(live, b.make(size))
	}
	return live
}

// onlyGo is a program that knows nothing of C: some live heap, much garbage.
func onlyGo(turns int) {
	live := make([]map[int][]byte, 16)
	for i := range turns {
		m := map[int][]byte{}
		for k := range 64 {
			m[k] = make([]byte, 512+i%7*64)
		}
		live[i%len(live)] = m
	}
	runtime.KeepAlive(live)
}

// reserve begins a Reserve of n bytes at the limit, and returns when that waits in line.
// The channel gets its error; room that it gets is given back.
func reserve(t *testing.T, p *pacer, pool *own.Pool, n int) <-chan error {
	t.Helper()
	got := make(chan error)
	go func() {
		room, err := pool.Reserve(t.Context(), n)
		if err == nil {
			room.Close()
		}
		got <- err
	}()
	testwait.Until(t, "Reserve to wait", p.atLimit.waiting)
	return got
}
