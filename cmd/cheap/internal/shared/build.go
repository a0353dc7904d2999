//go:build linux && (amd64 || arm64)

// Package shared reads the counts and stacks that a preloaded library keeps in a file, while the
// program runs and after it has ended. The library is that of package cmem, compiled for this; its
// file cmem/source/shared.c describes the file.
package shared

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/cmd/cheap/internal/executable"
	"github.com/cheapgo/cheap/cmem/source"
)

// A UsageError says that the library or its compiler is not there, or is another one than is needed.
type UsageError struct{ text string }

// Error says why, and what to do.
func (e *UsageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// Build makes the library in a folder, and returns its path. CC names the compiler, and
// perhaps options, as it does for the go command. The library is for programs with the C library of the
// compiler. It is compiled once, and kept in the user's folder for caches.
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
		return "", usagef("the C compiler %s was not found, which compiles the library that is preloaded; install gcc or clang, name a compiler in the variable CC, or make the library elsewhere with -build, and name it here with -library", cc[0])
	}
	library := filepath.Join(folder, "libcheapcmem.so")
	kept, err := newKept(cc)
	if err != nil {
		return "", err
	}
	if kept.copyTo(library) {
		return library, nil
	}
	files, made, err := unpack(folder)
	if err != nil {
		return "", err
	}
	args := slices.Concat(cc[1:], flags, []string{`-DCMEM_SOURCE="` + made + `"`, "-o", library})
	args = append(append(args, files...), "-ldl", "-lm", "-lpthread")
	var output bytes.Buffer
	command := exec.Command(cc[0], args...)
	command.Stdout, command.Stderr = &output, &output
	command.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LD_PRELOAD=") })
	if err := command.Run(); err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(output.String()), "\n")
		return "", fmt.Errorf("%s cannot compile the library that is preloaded: %w: %s", cc[0], err, line)
	}
	kept.keep(library)
	return library, nil
}

// The library has an unwinder of its own, and tables for that, which musl-gcc would leave out.
var flags = []string{"-shared", "-static-libgcc", "-Wl,--eh-frame-hdr", "-fPIC", "-O2", "-g", "-fno-omit-frame-pointer", "-DCMEM_SHARED"}

// A kept is a place for a compiled library: a file whose name has a hash of all that it is made of, and
// one of itself, so that a file that is not whole is none.
type kept string

// newKept returns the place for what a compiler makes, "" if the user has no folder for caches.
func newKept(cc []string) (kept, error) {
	folder, err := os.UserCacheDir()
	if err != nil {
		return "", nil
	}
	_, made, err := unpack("")
	if err != nil {
		return "", err
	}
	key := sha256.New()
	fmt.Fprintln(key, made, cc, flags)
	for _, name := range []string{"CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX"} {
		fmt.Fprintln(key, os.Getenv(name))
	}
	compiler, _ := exec.LookPath(cc[0])
	libc, _ := exec.Command(cc[0], slices.Concat(cc[1:], []string{"-print-file-name=libc.so.6"})...).Output() // another libc, another library
	for _, file := range []string{compiler, strings.TrimSpace(string(libc))} {
		if info, err := os.Stat(file); err == nil {
			fmt.Fprintln(key, file, info.Size(), info.ModTime().UnixNano())
		}
	}
	return kept(filepath.Join(folder, "cheap", "libcheapcmem-"+hex.EncodeToString(key.Sum(nil)[:16]))), nil
}

// copyTo makes a copy of the library, if it is there and whole.
func (k kept) copyTo(library string) bool {
	if k == "" {
		return false
	}
	names, _ := filepath.Glob(string(k) + "-*.so")
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil && k.of(text) == name {
			return os.WriteFile(library, text, 0o700) == nil
		}
		_ = os.Remove(name)
	}
	return false
}

// keep keeps a copy of the library. Where that is not possible, the next run compiles it again.
func (k kept) keep(library string) {
	text, err := os.ReadFile(library)
	if k == "" || err != nil || os.MkdirAll(filepath.Dir(string(k)), 0o700) != nil {
		return
	}
	_ = replace(k.of(text), library)
}

// of returns the name of the file for a library.
func (k kept) of(text []byte) string {
	sum := sha256.Sum256(text)
	return string(k) + "-" + hex.EncodeToString(sum[:8]) + ".so"
}

// BuildFile compiles the library in the folder, and writes it to a file. A program that has an older one loaded keeps that. It
// returns the C library that is needed, as in "glibc 2.34 or later".
func BuildFile(name string, folder *Folder) (needs string, err error) {
	library, err := Build(folder.Path)
	if err != nil {
		return "", err
	}
	if needs, err = needed(library); err != nil {
		return "", err
	}
	if err := replace(name, library); err != nil {
		// The path in the error is that of a file beside it.
		if e := new(fs.PathError); errors.As(err, &e) {
			err = e.Err
		} else if e := new(os.LinkError); errors.As(err, &e) {
			err = e.Err
		}
		return "", usagef("%s cannot be written: %v", name, err)
	}
	return needs, nil
}

// replace puts a copy of a file in the place of another one.
func replace(name, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".cheap-build-")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(0o755), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// unpack writes the C files, and returns those that are compiled, and a hash of all: cmem/source/shared.c is the
// last, because its variable is to be the last in the file. No files are written if the folder is "".
func unpack(folder string) (files []string, made string, err error) {
	const last = "shared.c"
	hash := sha256.New()
	err = fs.WalkDir(source.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := source.Files.ReadFile(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(text), text)
		if folder == "" {
			return nil
		}
		to := filepath.Join(folder, name)
		if strings.HasSuffix(name, ".c") && name != last {
			files = append(files, to)
		}
		return os.WriteFile(to, text, 0o600)
	})
	return append(files, filepath.Join(folder, last)), hex.EncodeToString(hash.Sum(nil)), err
}

// needed returns the C library that a library is linked with, and which version of glibc it needs.
func needed(library string) (string, error) {
	least, err := leastGlibc(library)
	if err != nil || least == "" {
		return "musl", err
	}
	return "glibc " + least + " or later", err
}

// Fits returns an error if a library needs a later glibc than a process has, whose C library is that file.
func Fits(library, libc string) error {
	least, err := leastGlibc(library)
	if err != nil || least == "" {
		return err
	}
	f, err := elf.Open(libc)
	if err != nil {
		return nil // another file has replaced it, and the dynamic linker will say
	}
	defer f.Close()
	has, _ := f.DynamicVersions()
	if !slices.ContainsFunc(has, func(v elf.DynamicVersion) bool { return v.Name == "GLIBC_"+least }) {
		return usagef("the process uses a glibc before %s, which the library needs; have the library made where the program was built, by cheap record -build, and name it with -library", least)
	}
	return nil
}

// leastGlibc returns which version of glibc a library needs, or "" if that is linked with musl.
func leastGlibc(library string) (string, error) {
	f, err := elf.Open(library)
	if err != nil {
		return "", err
	}
	defer f.Close()
	all, err := f.ImportedSymbols()
	least := []int{2, 0}
	for _, s := range all {
		var v [2]int
		if n, _ := fmt.Sscanf(s.Version, "GLIBC_%d.%d", &v[0], &v[1]); n == 2 && slices.Compare(v[:], least) > 0 {
			least = v[:]
		}
	}
	if isGlibc, err := needsGlibc(f); err != nil || !isGlibc {
		return "", err
	}
	return fmt.Sprintf("%d.%d", least[0], least[1]), err
}

func needsGlibc(f *elf.File) (bool, error) {
	all, err := f.ImportedLibraries()
	return slices.Contains(all, "libc.so.6"), err
}

// Check returns an error if a library that Build or BuildFile has made cannot be preloaded into a program.
func Check(library string, p *executable.Program) error {
	f, err := elf.Open(library)
	if errors.As(err, new(*elf.FormatError)) || errors.Is(err, io.EOF) {
		return errNotMade(library)
	} else if err != nil {
		return usagef("%v", err)
	}
	defer f.Close()
	section := f.Section("cmem_source")
	if section == nil {
		return errNotMade(library)
	}
	is, err := section.Data()
	if err != nil {
		return err
	}
	_, want, err := unpack("")
	if err != nil {
		return err
	}
	if string(bytes.TrimRight(is, "\x00")) != want {
		return usagef("%s is of another version of this command; make it again with cheap record -build", library)
	}
	if f.Machine != p.Machine {
		return usagef("%s is a library for %v, and %s a program for %v", library, f.Machine, p.Path, p.Machine)
	}
	if glibc, err := needsGlibc(f); err != nil {
		return err
	} else if glibc == p.Musl {
		return usagef("%s uses %s, and the library that is preloaded is one for %s; have another compiler make it, named in the variable CC, such as musl-gcc", p.Path, libc(p.Musl), libc(!glibc))
	}
	return nil
}

func errNotMade(library string) error {
	return usagef("%s was not made with cheap record -build", library)
}

func libc(musl bool) string {
	if musl {
		return "musl"
	}
	return "glibc"
}

// CheckPath returns an error if a path cannot be preloaded: the dynamic linker separates paths by
// spaces and colons, and puts folders in place of names with a dollar sign.
func CheckPath(path string) error {
	if strings.ContainsAny(path, " :$") {
		return usagef("%s has a space, a colon or a dollar sign in its name, so no library can be preloaded from there; name another folder", path)
	}
	return nil
}
