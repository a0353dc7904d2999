package main

import (
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/cheapgo/cheap/cmd/cheap/internal/peers"
	"github.com/cheapgo/cheap/cmd/cheap/internal/trace"
)

// A reporter writes results in one format: begin, then trace for each trace,
// then end, unless an error comes first.
type reporter interface {
	begin() error
	trace(tr *trace.Trace, s *settings, results []replayed) error
	end() error
}

// reporters makes the reporter of a format.
var reporters = map[string]func(io.Writer) reporter{
	"text":  func(w io.Writer) reporter { return &textReport{w: w} },
	"json":  func(w io.Writer) reporter { return &jsonReport{w: w} },
	"bench": func(w io.Writer) reporter { return &benchReport{w: w} },
}

// A machine is what figures depend on besides the code.
type machine struct {
	goVersion string
	goos      string
	goarch    string
	cpus      int
	malloc    string // which malloc C is linked with
	hugePages string // the mode of transparent huge pages, "" where there is none
}

func thisMachine() machine {
	return machine{
		goVersion: runtime.Version(),
		goos:      runtime.GOOS,
		goarch:    runtime.GOARCH,
		cpus:      runtime.NumCPU(),
		malloc:    peers.CMalloc(),
		hugePages: hugePages("/sys/kernel/mm/transparent_hugepage/enabled"),
	}
}

// hugePages reads the mode from a file such as "always [madvise] never".
func hugePages(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(text), "[")
	mode, _, _ := strings.Cut(rest, "]")
	return mode
}
