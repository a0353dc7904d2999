package resident

import (
	"errors"
	"fmt"
	"os"

	"github.com/cheapgo/cheap/internal/watch/procfs"
)

// A Reader reads the resident memory of a process. Reading allocates nothing.
type Reader struct {
	file  *os.File
	parse func(text []byte) (int64, bool)
	buf   [4096]byte
}

// open prefers smaps_rollup (Linux 4.14), which is exact, to statm.
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

func parseRollup(text []byte) (int64, bool) { return procfs.Bytes(text, "Anonymous") }

func parseStatm(text []byte) (int64, bool) {
	all, file := procfs.Resident(text, int64(os.Getpagesize()))
	return all - file, all != 0
}
