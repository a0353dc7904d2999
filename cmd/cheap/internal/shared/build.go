//go:build linux && (amd64 || arm64)

// Package shared reads the counts and stacks that a preloaded library keeps in a file, while the
// program runs and after it has ended. The library is that of package cmem, compiled for this; its
// file cmem/source/shared.c describes the file.
package shared

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/cmem/source"
)

// A CompilerError says why there is no C compiler for the library.
type CompilerError struct{ text string }

// Error says why, and what to do.
func (e *CompilerError) Error() string { return e.text }

// Build compiles the library into a folder, and returns its path. CC names the compiler, and
// perhaps options, as it does for the go command.
func Build(folder string) (string, error) {
	cc := strings.Fields(os.Getenv("CC"))
	if len(cc) == 0 {
		cc = []string{"cc"}
		for _, name := range []string{"cc", "gcc", "clang"} {
			if _, err := exec.LookPath(name); err == nil {
				cc = []string{name}
				break
			}
		}
	}
	if _, err := exec.LookPath(cc[0]); err != nil {
		return "", &CompilerError{fmt.Sprintf("the C compiler %s was not found, which compiles the library that is preloaded; install gcc or clang, or name a compiler in the variable CC", cc[0])}
	}
	files, err := unpack(folder)
	if err != nil {
		return "", err
	}
	library := filepath.Join(folder, "libcheapcmem.so")
	args := append(cc[1:], "-shared", "-fPIC", "-O2", "-g", "-fno-omit-frame-pointer", "-DCMEM_SHARED", "-o", library)
	args = append(append(args, files...), "-ldl", "-lm", "-lpthread")
	var output bytes.Buffer
	command := exec.Command(cc[0], args...)
	command.Stdout, command.Stderr = &output, &output
	command.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LD_PRELOAD=") })
	if err := command.Run(); err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(output.String()), "\n")
		return "", fmt.Errorf("%s cannot compile the library that is preloaded: %w: %s", cc[0], err, line)
	}
	return library, isForGlibc(library, cc[0])
}

// unpack writes the C files, and returns those that are compiled: cmem/source/shared.c is the last, because its
// variable is to be the last in the file.
func unpack(folder string) ([]string, error) {
	const last = "shared.c"
	var files []string
	err := fs.WalkDir(source.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := source.Files.ReadFile(name)
		if err != nil {
			return err
		}
		to := filepath.Join(folder, name)
		if strings.HasSuffix(name, ".c") && name != last {
			files = append(files, to)
		}
		return os.WriteFile(to, text, 0o600)
	})
	return append(files, filepath.Join(folder, last)), err
}

// isForGlibc returns an error if a library is linked with another C library than programs.
func isForGlibc(library, cc string) error {
	f, err := elf.Open(library)
	if err != nil {
		return err
	}
	defer f.Close()
	if needs, err := f.ImportedLibraries(); err != nil || !slices.Contains(needs, "libc.so.6") {
		return &CompilerError{fmt.Sprintf("the C compiler %s does not make libraries for glibc; name another one in the variable CC", cc)}
	}
	return nil
}

// Check returns an error if a path cannot be preloaded: the dynamic linker separates paths by
// spaces and colons, and puts folders in place of names with a dollar sign.
func Check(path string) error {
	if strings.ContainsAny(path, " :$") {
		return errors.New("the folder of temporary files has a space, a colon or a dollar sign in its name, so that no library in it can be preloaded; name another one in TMPDIR")
	}
	return nil
}
