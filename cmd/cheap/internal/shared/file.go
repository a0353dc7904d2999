//go:build linux && (amd64 || arm64)

package shared

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/cheapgo/cheap/cmem/fht"
	"github.com/cheapgo/cheap/cmem/heapprofile"
)

// A header is struct header of cmem/source/shared.c.
type header struct {
	magic                              [8]byte
	version, started, base             uint64
	variables, variablesN, variablesAt uint64
	used, modules, program, pid        uint64
	fields                             fields
	off                                [256]byte
	attached                           attached
	goCode                             [4]uint64
	labels, ready                      uint64
}

// An attached is struct attached of cmem/source/internal.h.
type attached struct {
	wanted, state, end, beat        uint32
	before, later, slots, slotsLeft uint64
}

// The fields are struct fields of cmem/source/internal.h: where variables lie, and the fields of records.
type fields struct {
	threads, none, threadAll, threadLeft, threadDrawn, threadMallocs, threadFrees                                 uint64
	taken, lost, rate                                                                                             uint64
	stacks, stackAll, stackC, stackGo, stackClosed, stackLabels, stackAllocs, stackPeakBytes, stackPeak, stackPCs uint64
	live, liveVariance, liveSamples, liveBlocks, liveUsable, peakLive, peakVariance, peak, closed                 uint64
	trace                                                                                                         uint64
	mappingStacks, mappingPeak                                                                                    uint64
}

// Size is the length of the file, which has memory only where the library has asked for it.
const Size = 64 << 30

// A File is what a program and this one have mapped. Its methods may be called from any goroutine.
type File struct {
	Path    string
	data    []byte
	lock    *os.File
	looked  uint64 // the last module that FindGo has looked at
	goFile  atomic.Pointer[goFile]
	process Image    // of Map
	root    *os.File // where the files of the process are; nil: where they are for this one
}

// Create makes a file in memory, or in the folder if there is little room, and there is a folder. Its name has
// the number of this process.
func Create(folder *Folder) (*File, error) {
	const least = 1 << 30
	var fs syscall.Statfs_t
	where := []string{memory}
	if folder != nil {
		where = []string{folder.Path, memory}
		if err := syscall.Statfs(memory, &fs); err == nil && fs.Bavail*uint64(fs.Bsize) >= least {
			where = []string{memory, folder.Path}
		}
	}
	f, err := makeFile(where[0])
	if err != nil && len(where) > 1 {
		f, err = makeFile(where[1])
	}
	if err != nil {
		return nil, err
	}
	file := &File{lock: f}
	if file.Path, err = filepath.Abs(f.Name()); err == nil {
		err = f.Truncate(Size)
	}
	if err == nil {
		file.data, err = syscall.Mmap(int(f.Fd()), 0, Size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	}
	if err != nil {
		os.Remove(f.Name())
		f.Close()
		if limit := (syscall.Rlimit{}); syscall.Getrlimit(syscall.RLIMIT_AS, &limit) == nil && limit.Cur < 2*Size {
			err = fmt.Errorf("%w: it takes %d GiB of addresses, and there is a limit of addresses (ulimit -v)", err, Size>>30)
		}
		return nil, fmt.Errorf("%s, which the program and this command are to share, cannot be made: %w", f.Name(), err)
	}
	return file, nil
}

// A Note says whose file it is, for a run that finds the file after this one was killed. It lies at the end, which no
// program ever needs.
type Note struct {
	Program string // the path
	Made    int64  // when the program was, in nanoseconds
	Out     string // the path of the profile, or of the page
}

const noteSize = 64 << 10

// WriteNote writes the note.
func (f *File) WriteNote(n Note) error {
	text, err := json.Marshal(n)
	if err != nil || len(text) >= noteSize {
		return err
	}
	_, err = f.lock.WriteAt(text, Size-noteSize)
	return err
}

// OpenLeft opens a file that was left, and reads its note. Close ends its use.
func OpenLeft(path string) (*File, Note, error) {
	var n Note
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, n, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() != Size {
		return nil, n, errDamaged
	}
	text := make([]byte, noteSize)
	if _, err := f.ReadAt(text, Size-noteSize); err != nil {
		return nil, n, err
	}
	if err := json.Unmarshal(bytes.TrimRight(text, "\x00"), &n); err != nil {
		return nil, n, errDamaged
	}
	file := &File{Path: path}
	file.data, err = syscall.Mmap(int(f.Fd()), 0, Size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	return file, n, err
}

// OpenChild opens a file that a program has made which a recorded one has started, and returns the process. Close ends its use.
func OpenChild(path string) (file *File, pid int, err error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Size() != Size {
		return nil, 0, errDamaged
	}
	file = &File{Path: path}
	if file.data, err = syscall.Mmap(int(f.Fd()), 0, Size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED); err != nil {
		return nil, 0, err
	}
	if !file.Started() {
		return nil, 0, errors.Join(errDamaged, file.Close()) // yet
	}
	pid = int(file.header().pid)
	file.process = ImageOf(pid)
	return file, pid, nil
}

// Ready has the program of OpenChild begin, which has waited.
func (f *File) Ready() { atomic.StoreUint64(&f.header().ready, 1) }

// Remove removes the file, and ends its lock. Its memory is given back when the program has ended, too.
func (f *File) Remove() error { return errors.Join(os.Remove(f.Path), f.lock.Close()) }

func (f *File) header() *header { return (*header)(unsafe.Pointer(unsafe.SliceData(f.data))) }

// Started reports whether the library has begun. Before that, no other method may be called.
func (f *File) Started() bool {
	h := f.header()
	return atomic.LoadUint64(&h.started) != 0 && string(h.magic[:]) == "cheapmem" && h.version == 2
}

// Off says in a sentence why the library counts nothing, or "".
func (f *File) Off() string {
	off := f.header().off[:]
	if i := bytes.IndexByte(off, 0); i >= 0 {
		off = off[:i]
	}
	return string(off)
}

// Base returns what is to be added to addresses of the program.
func (f *File) Base() uint64 { return f.header().program }

var errDamaged = errors.New("the file of the preloaded library is damaged: the program has written into it")

// at returns where an address of the program lies here. There are n bytes.
func (f *File) at(address, n uint64) (unsafe.Pointer, error) {
	h := f.header()
	at := address - h.base
	if v := address - h.variables; v < h.variablesN {
		at = h.variablesAt + v
	}
	if at >= Size || n > Size-at || address%8 != 0 {
		return nil, errDamaged
	}
	return unsafe.Pointer(&f.data[at]), nil
}

func (f *File) uint64(address uint64) (uint64, error) {
	p, err := f.at(address, 8)
	if err != nil {
		return 0, err
	}
	return atomic.LoadUint64((*uint64)(p)), nil
}

// A reader reads several words, and remembers the first error.
type reader struct {
	f   *File
	err error
}

func (r *reader) uint64(address uint64) uint64 {
	v, err := r.f.uint64(address)
	if r.err == nil {
		r.err = err
	}
	return v
}

func (r *reader) float64(address uint64) float64 { return math.Float64frombits(r.uint64(address)) }

// uint32 reads a number that lies at a multiple of 4.
func (r *reader) uint32(address uint64) uint32 {
	v := r.uint64(address &^ 7)
	if address%8 != 0 {
		v >>= 32
	}
	return uint32(v)
}

// Counts are those of the program.
type Counts struct {
	Mallocs, Frees, Bytes uint64 // since the program began
	Live, LiveError       int64  // bytes in use, an estimate, and its standard deviation
	Held                  int64  // what malloc has taken for these: a word, and the size that it gives
	Peak, PeakError       int64  // the most that Live was, and the standard deviation of that
	LiveSamples           uint64 // of what is in use
	Samples, Lost         uint64
	Rate                  int64
}

// LiveBound is what is in use at most, with a certainty of 95 %, where no sample of it is in use. A
// sample stands for Rate bytes in the mean, so of 3 × Rate bytes there is none with a probability of
// exp(-3), 5 %. With a rate of 1 all blocks are sampled.
func (c Counts) LiveBound() int64 {
	if c.Rate <= 1 {
		return 0
	}
	return 3 * c.Rate
}

// Counts reads the counts.
func (f *File) Counts() (Counts, error) {
	var c Counts
	r := &reader{f: f}
	d := &f.header().fields
	add := func(t uint64) {
		c.Mallocs += r.uint64(t + d.threadMallocs)
		c.Frees += r.uint64(t + d.threadFrees)
		c.Bytes += r.uint64(t+d.threadDrawn) - r.uint64(t+d.threadLeft)
	}
	add(d.none)
	for t := r.uint64(d.threads); t != 0 && r.err == nil; t = r.uint64(t + d.threadAll) {
		add(t)
	}
	c.LiveSamples = r.uint64(d.liveSamples)
	c.Samples, c.Lost, c.Rate = r.uint64(d.taken), r.uint64(d.lost), int64(r.uint64(d.rate))
	c.Live, c.Peak = int64(max(0, r.float64(d.live))), int64(r.float64(d.peakLive))
	c.Held = int64(max(0, r.float64(d.liveUsable)+8*r.float64(d.liveBlocks)))
	c.LiveError = int64(math.Sqrt(max(0, r.float64(d.liveVariance))))
	c.PeakError = int64(math.Sqrt(max(0, r.float64(d.peakVariance))))
	return c, r.err
}

// Sites reads the stacks that have allocated.
func (f *File) Sites() ([]heapprofile.Site, error) {
	d := &f.header().fields
	return f.sites(d.stacks, d.peak)
}

// Mappings reads the stacks that have mapped memory without malloc.
func (f *File) Mappings() ([]heapprofile.Site, error) {
	d := &f.header().fields
	return f.sites(d.mappingStacks, d.mappingPeak)
}

// sites reads the stacks of a list, with a count of its maxima.
func (f *File) sites(first, peaks uint64) ([]heapprofile.Site, error) {
	r := &reader{f: f}
	d := &f.header().fields
	modules, err := f.modules()
	if err != nil {
		return nil, err
	}
	closed, peak := r.uint32(d.closed), r.uint64(peaks)
	var all []heapprofile.Site
	for s := r.uint64(first); s != 0 && r.err == nil; s = r.uint64(s + d.stackAll) {
		c, goPart := r.uint32(s+d.stackC), r.uint32(s+d.stackGo)
		if c > 1<<10 || goPart > 1<<10 {
			return nil, errDamaged
		}
		pcs := make([]uintptr, c+goPart)
		for i := range pcs {
			pcs[i] = uintptr(r.uint64(s + d.stackPCs + 8*uint64(i)))
		}
		if r.uint32(s+d.stackClosed) != closed {
			hide(modules, pcs[:c])
			for kind, pcs := range heapprofile.Parts(pcs[c:]) {
				if kind == heapprofile.CPart {
					hide(modules, pcs)
				}
			}
		}
		site := heapprofile.Site{
			C: pcs[:c], Go: pcs[c:], Labels: r.labels(r.uint64(s + d.stackLabels)),
			Allocs: r.float64(s + d.stackAllocs), AllocBytes: r.float64(s + d.stackAllocs + 8),
			Frees: r.float64(s + d.stackAllocs + 16), FreeBytes: r.float64(s + d.stackAllocs + 24),
		}
		site.PeakBytes = site.AllocBytes - site.FreeBytes
		if r.uint64(s+d.stackPeak) == peak {
			site.PeakBytes = r.float64(s + d.stackPeakBytes)
		}
		all = append(all, site)
	}
	return all, r.err
}

// labels reads a set of labels: a struct cmem_labels of cmem/source/cmem.h.
func (r *reader) labels(set uint64) (all []heapprofile.Label) {
	const number, first, key, text = 16, 24, 16, 24 // in the set; in a label
	if set == 0 {
		return nil
	}
	for i := range min(r.uint64(set+number), 1<<10) {
		l := r.uint64(set + first + 8*i)
		lengths := r.uint64(l + key)
		k, v := lengths&0xffff, lengths>>16&0xffff
		p, err := r.f.at(l, text+k+v)
		if err != nil {
			r.err = err
			return nil
		}
		s := string(unsafe.Slice((*byte)(unsafe.Add(p, text)), k+v))
		// Other programs would refuse a profile that has what is not UTF-8.
		all = append(all, heapprofile.Label{Key: strings.ToValidUTF8(s[:k], "\ufffd"), Value: strings.ToValidUTF8(s[k:], "\ufffd")})
	}
	return all
}

// InUse reads the bytes in use of each stack that has allocated, in the order of Sites. New stacks are put before the
// others, so a list that was read later ends with the stacks of this one.
func (f *File) InUse() ([]float64, error) { return f.inUse(f.header().fields.stacks) }

// Mapped is InUse for Mappings.
func (f *File) Mapped() ([]float64, error) { return f.inUse(f.header().fields.mappingStacks) }

func (f *File) inUse(first uint64) ([]float64, error) {
	r := &reader{f: f}
	d := &f.header().fields
	var all []float64
	for s := r.uint64(first); s != 0 && r.err == nil; s = r.uint64(s + d.stackAll) {
		all = append(all, r.float64(s+d.stackAllocs+8)-r.float64(s+d.stackAllocs+24))
	}
	return all, r.err
}

// hide sets those addresses to 0 whose library may have been unloaded.
func hide(modules []module, pcs []uintptr) {
	for i, pc := range pcs {
		if !isInitial(modules, uint64(pc)) {
			pcs[i] = 0
		}
	}
}

// Ring returns the ring of events, if the program was started with a trace.
func (f *File) Ring() (*fht.Ring, error) {
	r := &reader{f: f}
	trace := f.header().fields.trace
	const head, read, size, over, words = 0, 64, 72, 88, 96 // of struct cmem_trace
	n, at := r.uint64(trace+size), r.uint64(trace+words)
	if r.err != nil || n == 0 || n&(n-1) != 0 || n > Size/16 {
		return nil, errDamaged
	}
	var p [4]*uint64
	for i, field := range []uint64{head, read, over} {
		v, err := f.at(trace+field, 8)
		if err != nil {
			return nil, err
		}
		p[i] = (*uint64)(v)
	}
	events, err := f.at(at, 16*n)
	if err != nil {
		return nil, err
	}
	return &fht.Ring{Words: unsafe.Slice((*uint64)(events), 2*n), Head: p[0], Read: p[1], Over: p[2]}, nil
}

// Threads returns how many threads have written an event.
func (f *File) Threads() uint64 {
	const threads = 80
	n, _ := f.uint64(f.header().fields.trace + threads)
	return n
}
