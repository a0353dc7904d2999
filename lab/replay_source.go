package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cheapgo/cheap/internal/replay/recorded"
	"github.com/cheapgo/cheap/internal/replay/trace"
)

// A source is where a trace comes from.
type source struct {
	name string // in reports: that of the file, without directory and endings
	arg  string // the argument: a file, or the name of an embedded trace
}

// newSource returns the source that an argument names.
func newSource(arg string) source {
	name := filepath.Base(arg)
	name = strings.TrimSuffix(name, ".gz")
	name = strings.TrimSuffix(name, ".fht")
	return source{name: name, arg: arg}
}

// open prefers a file to an embedded trace of the same name.
func (s source) open() (io.ReadCloser, error) {
	file, err := os.Open(s.arg)
	if !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	if file, err := recorded.Open(s.arg); err == nil {
		return file, nil
	}
	return nil, fmt.Errorf("%w; the traces of this program are %s", err, strings.Join(recorded.Names, " and "))
}

// read decodes the trace. A trace without operations is an error. An error names
// the source.
func (s source) read() (*trace.Trace, error) {
	file, err := s.open()
	if err != nil {
		return nil, err // an fs.PathError, which names the file
	}
	defer file.Close()
	tr, err := trace.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.arg, err)
	}
	if len(tr.Ops) == 0 {
		return nil, fmt.Errorf("%s: the trace has no operations", s.arg)
	}
	return tr, nil
}
