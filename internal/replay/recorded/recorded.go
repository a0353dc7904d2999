// Package recorded embeds traces, so that the command works from any folder: the
// allocations of SQLite for a script, and of gcc for a C file.
package recorded

import (
	"embed"
	"fmt"
	"io"

	"github.com/cheapgo/cheap/internal/replay/trace"
)

//go:embed sqlite.fht.gz gcc.fht.gz
var files embed.FS

// Names names the traces, in the order of a replay without arguments.
var Names = []string{"sqlite", "gcc"}

// Open returns the file of a trace. The error is [io/fs.ErrNotExist] if there is no
// trace of the name.
func Open(name string) (io.ReadCloser, error) { return files.Open(name + ".fht.gz") }

// Read decodes a trace.
func Read(name string) (*trace.Trace, error) {
	file, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	tr, err := trace.Read(file)
	if err != nil {
		return nil, fmt.Errorf("trace %s: %w", name, err)
	}
	return tr, nil
}
