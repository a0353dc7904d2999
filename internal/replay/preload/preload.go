// Package preload finds libraries that have a malloc of their own, and says what a
// process needs in which one of them is C's malloc.
package preload

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/internal/replay/peers"
)

// A Library has a malloc.
type Library struct {
	Name string // in reports
	Path string
}

// known are the libraries that have a name, with the file, and the package that has it
// in Debian and Ubuntu.
var known = []struct{ name, file, debian string }{
	{"jemalloc", "libjemalloc.so.2", "libjemalloc2"},
	{"mimalloc", "libmimalloc.so.[23]", "libmimalloc2.0"},
	{"tcmalloc", "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"},
}

// folders are where systems keep libraries: Debian, Fedora, Alpine, by hand.
var folders = []string{"/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib64", "/usr/local/lib"}

// Names returns the names that Find knows.
func Names() []string {
	var names []string
	for _, k := range known {
		names = append(names, k.name)
	}
	return names
}

// A MissingError says that a library is not on this machine, or cannot be preloaded.
type MissingError struct{ Name, Reason string }

// Error names the library and the reason.
func (e *MissingError) Error() string { return fmt.Sprintf("%s is not measured: %s", e.Name, e.Reason) }

// Unwrap returns [errors.ErrUnsupported].
func (e *MissingError) Unwrap() error { return errors.ErrUnsupported }

// Find finds the library of a name, or at a path, which has a slash. The error is a
// *MissingError if it is not there, and another one if no library has the name.
func Find(name string) (Library, error) {
	if strings.Contains(name, "/") {
		path, err := filepath.Abs(name)
		if err == nil {
			_, err = os.Stat(path)
		}
		l := Library{Name: nameOf(name), Path: path}
		if err != nil {
			return l, &MissingError{l.Name, err.Error()}
		}
		return l, supported(l)
	}
	i := slices.IndexFunc(known, func(k struct{ name, file, debian string }) bool { return k.name == name })
	if i < 0 {
		return Library{}, fmt.Errorf("unknown library %q; the libraries are %s, and paths with a slash", name, strings.Join(Names(), ", "))
	}
	l := Library{Name: name}
	if err := supported(l); err != nil {
		return l, err
	}
	for _, folder := range folders {
		if files, _ := filepath.Glob(filepath.Join(folder, known[i].file)); len(files) > 0 {
			l.Path = files[0]
			return l, nil
		}
	}
	return l, &MissingError{name, fmt.Sprintf("there is no %s; Debian and Ubuntu have it in the package %s", known[i].file, known[i].debian)}
}

// supported returns an error where nothing can be preloaded.
func supported(l Library) error {
	if runtime.GOOS != "linux" {
		return &MissingError{l.Name, "libraries are preloaded on Linux only"}
	}
	if _, err := peers.Lookup("native"); err != nil {
		return &MissingError{l.Name, "it needs cgo (CGO_ENABLED=1 and a C compiler)"}
	}
	return nil
}

// nameOf returns the name of a file without lib and what follows the first dot.
func nameOf(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	return strings.TrimPrefix(name, "lib")
}

// Env returns the variable with which a process gets the library's malloc.
func (l Library) Env() string { return "LD_PRELOAD=" + l.Path }

// Check is for that process. It returns an error unless the malloc that C calls here is
// in the file at path. The dynamic linker goes on without a library that it cannot load,
// and so would measure glibc under the name of another.
func Check(path string) error {
	have := peers.MallocFile()
	if sameFile(have, path) {
		return nil
	}
	return fmt.Errorf("malloc is in %s, and not in %s", filepath.Base(have), path)
}

func sameFile(a, b string) bool {
	in, err := os.Stat(a)
	if err != nil {
		return false
	}
	is, err := os.Stat(b)
	return err == nil && os.SameFile(in, is)
}
