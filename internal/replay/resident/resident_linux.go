package resident

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// A Reader reads the resident memory of a process. Reading allocates nothing.
type Reader struct {
	file  *os.File
	parse func(text []byte) (int64, bool)
	buf   [4096]byte
}

// open prefers smaps_rollup (Linux 4.14), which walks the page tables. The
// counters in statm, which remain, are kept per CPU and folded now and then: they
// may be wrong by some hundred KiB.
func open(process string) (*Reader, error) {
	file, err := os.Open("/proc/" + process + "/smaps_rollup")
	if err == nil {
		return &Reader{file: file, parse: parseRollup}, nil
	}
	file, err = os.Open("/proc/" + process + "/statm")
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: there is no /proc/%s", errors.ErrUnsupported, process)
	}
	if err != nil {
		return nil, err
	}
	return &Reader{file: file, parse: parseStatm}, nil
}

// Bytes returns the figure of this moment.
func (r *Reader) Bytes() (int64, error) {
	n, err := r.file.ReadAt(r.buf[:], 0) // io.EOF is how it ends well
	v, ok := r.parse(r.buf[:n])
	if !ok {
		return 0, fmt.Errorf("%s: no figure in %q (%v)", r.file.Name(), r.buf[:n], err)
	}
	return v, nil
}

// Close closes the file behind the Reader.
func (r *Reader) Close() error { return r.file.Close() }

// parseRollup finds the line "Anonymous: 1234 kB".
func parseRollup(text []byte) (int64, bool) {
	_, rest, ok := bytes.Cut(text, []byte("\nAnonymous:"))
	if !ok {
		return 0, false
	}
	kb, _, ok := bytes.Cut(rest, []byte(" kB"))
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseInt(string(bytes.TrimSpace(kb)), 10, 64)
	return v << 10, err == nil
}

// parseStatm takes the pages that are shared with files from those that are
// resident: the third field from the second.
func parseStatm(text []byte) (int64, bool) {
	fields := bytes.Fields(text)
	if len(fields) < 3 {
		return 0, false
	}
	resident, err1 := strconv.ParseInt(string(fields[1]), 10, 64)
	shared, err2 := strconv.ParseInt(string(fields[2]), 10, 64)
	return (resident - shared) * int64(os.Getpagesize()), err1 == nil && err2 == nil
}
