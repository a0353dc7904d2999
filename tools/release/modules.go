package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// A mod is a module of the repository.
type mod struct {
	dir    string // "." for the root
	path   string
	needs  []string // the paths of other modules of the repository, direct and indirect
	sum    string   // of its files at the version
	modSum string   // of its go.mod
}

// private are folders whose modules get no version: nobody requires them.
var private = []string{"examples", "proof", "tools"}

func (m *mod) published() bool {
	return !slices.ContainsFunc(private, func(dir string) bool { return m.dir == dir || strings.HasPrefix(m.dir, dir+"/") })
}

// tag returns the tag by which the go command finds a version.
func (m *mod) tag(version string) string { return path.Join(m.dir, version) }

// file returns the path of one of its files.
func (m *mod) file(name string) string { return path.Join(m.dir, name) }

// modules returns all modules of a tree, by their paths.
func (t *tree) modules() (map[string]*mod, error) {
	all := map[string]*mod{}
	for name, text := range t.files {
		if path.Base(name) != "go.mod" {
			continue
		}
		m := &mod{dir: path.Dir(name), path: modfile.ModulePath(text)}
		if m.path == "" {
			return nil, fmt.Errorf("%s has no module line", name)
		}
		all[m.path] = m
	}
	for _, m := range all {
		f, err := modfile.Parse(m.file("go.mod"), t.text(m.file("go.mod")), nil)
		if err != nil {
			return nil, err
		}
		for _, r := range f.Require {
			other, ours := all[r.Mod.Path]
			if !ours {
				continue
			}
			if m.published() && !other.published() {
				return nil, fmt.Errorf("%s requires %s, which gets no version", m.path, other.path)
			}
			m.needs = append(m.needs, r.Mod.Path)
		}
	}
	return all, nil
}

// ordered returns the published modules so that each comes after those that it needs.
func ordered(all map[string]*mod) ([]*mod, error) {
	var list []*mod
	const (
		begun = iota + 1
		done
	)
	state := map[*mod]int{}
	var visit func(m *mod) error
	visit = func(m *mod) error {
		switch state[m] {
		case begun:
			return fmt.Errorf("%s needs itself", m.path)
		case done:
			return nil
		}
		state[m] = begun
		for _, need := range m.needs {
			if err := visit(all[need]); err != nil {
				return err
			}
		}
		state[m] = done
		list = append(list, m)
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name].published() {
			if err := visit(all[name]); err != nil {
				return nil, err
			}
		}
	}
	if len(list) == 0 {
		return nil, errors.New("there is no module")
	}
	return list, nil
}

// commitFile has the commit of which a release was made, for cheap version. The commit of the tags
// cannot be named in a file of its own.
const commitFile = "cmd/cheap/commit.go"

// untilVersion matches what documents say as long as no version has a tag.
var untilVersion = regexp.MustCompile(`(?s)<!-- until a version -->.*?<!-- end -->`)

// A change has new texts of files.
type change map[string][]byte

// edited returns what changes in the commit of the tags, and what changes in the commit after it. All
// modules require the version of the published ones, so that the versions agree wherever modules of
// the repository are built together; published modules have no replace line in the first commit. In
// both documents do not say any more that there is no version.
func edited(t *tree, all map[string]*mod, published []*mod, version string) (at, next change, err error) {
	at, next = change{}, change{}
	for _, m := range all {
		name := m.file("go.mod")
		if len(m.needs) == 0 {
			if err := noReplace(name, t.text(name)); err != nil && m.published() {
				return nil, nil, err
			}
			continue
		}
		if next[name], err = requiring(name, t.text(name), all, version); err != nil {
			return nil, nil, err
		}
		if at[name] = next[name]; m.published() {
			if at[name], err = withoutReplace(name, next[name], all); err != nil {
				return nil, nil, err
			}
		}
	}
	for name, text := range t.files {
		if path.Ext(name) == ".md" {
			if rest := untilVersion.ReplaceAll(text, nil); len(rest) < len(text) {
				at[name], next[name] = rest, rest
			}
		}
	}
	old := []byte("const commit = \"\"\n")
	if !bytes.Contains(t.text(commitFile), old) {
		return nil, nil, fmt.Errorf("%s has no line %s", commitFile, old)
	}
	next[commitFile] = t.text(commitFile)
	at[commitFile] = bytes.Replace(next[commitFile], old, fmt.Appendf(nil, "const commit = %q\n", t.commit), 1)

	// The files of a module have the sums of those that it needs.
	for _, m := range published {
		if len(m.needs) > 0 {
			name := m.file("go.sum")
			next[name] = t.text(name)
			at[name] = withSums(next[name], m, all, version)
		}
		if m.sum, m.modSum, err = sums(t.with(at), m, version); err != nil {
			return nil, nil, err
		}
	}
	return at, next, nil
}

// requiring returns a go.mod that requires the version of each module of the repository that it
// required at any.
func requiring(name string, text []byte, all map[string]*mod, version string) ([]byte, error) {
	f, err := modfile.Parse(name, text, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range f.Require {
		if _, ours := all[r.Mod.Path]; ours {
			if err := f.AddRequire(r.Mod.Path, version); err != nil {
				return nil, err
			}
		}
	}
	return f.Format()
}

// withoutReplace returns a go.mod without the lines that replace modules of the repository. Others
// are an error: go install refuses a module that has any.
func withoutReplace(name string, text []byte, all map[string]*mod) ([]byte, error) {
	f, err := modfile.Parse(name, text, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range slices.Clone(f.Replace) {
		if _, ours := all[r.Old.Path]; ours {
			if err := f.DropReplace(r.Old.Path, r.Old.Version); err != nil {
				return nil, err
			}
		}
	}
	f.Cleanup()
	if text, err = f.Format(); err != nil {
		return nil, err
	}
	return text, noReplace(name, text)
}

func noReplace(name string, text []byte) error {
	f, err := modfile.Parse(name, text, nil)
	if err != nil {
		return err
	}
	for _, r := range f.Replace {
		return fmt.Errorf("%s replaces %s: go install would refuse the module", name, r.Old.Path)
	}
	return nil
}

// withSums returns a go.sum with the lines of the modules that m needs, in the order of go mod tidy.
func withSums(text []byte, m *mod, all map[string]*mod, version string) []byte {
	lines := strings.SplitAfter(string(text), "\n")
	lines = slices.DeleteFunc(lines, func(line string) bool {
		name, _, _ := strings.Cut(line, " ")
		_, ours := all[name]
		return line == "" || ours
	})
	var sums []string
	for _, need := range m.needs {
		sums = append(sums,
			fmt.Sprintf("%s %s %s\n", need, version, all[need].sum),
			fmt.Sprintf("%s %s/go.mod %s\n", need, version, all[need].modSum))
	}
	for _, sum := range sums {
		// The go command sorts by path, then by version. Only the paths differ here.
		path, _, _ := strings.Cut(sum, " ")
		at := slices.IndexFunc(lines, func(line string) bool {
			other, _, _ := strings.Cut(line, " ")
			return other > path
		})
		if at < 0 {
			at = len(lines)
		}
		lines = slices.Insert(lines, at, sum)
	}
	return []byte(strings.Join(lines, ""))
}

// sums returns the sums of a module and of its go.mod, as the go command computes them of a tag.
func sums(t *tree, m *mod, version string) (sum, modSum string, err error) {
	var files []zip.File
	for name, text := range t.files {
		if within, ok := strings.CutPrefix(name, m.dir+"/"); ok || m.dir == "." {
			if m.dir == "." {
				within = name
			}
			files = append(files, file{within, text})
		}
	}
	if _, ok := t.files[m.file("LICENSE")]; !ok {
		files = append(files, file{"LICENSE", t.text("LICENSE")}) // the go command adds that of the root
	}
	dir, err := os.MkdirTemp("", "release-*")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(dir)
	f, err := os.Create(filepath.Join(dir, "module.zip"))
	if err != nil {
		return "", "", err
	}
	err = zip.Create(f, module.Version{Path: m.path, Version: version}, files)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", "", err
	}
	if sum, err = dirhash.HashZip(f.Name(), dirhash.DefaultHash); err != nil {
		return "", "", err
	}
	modSum, err = dirhash.DefaultHash([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(t.text(m.file("go.mod")))), nil
	})
	return sum, modSum, err
}

// A file is a file of a module in memory.
type file struct {
	name string // within the module
	text []byte
}

func (f file) Path() string                 { return f.name }
func (f file) Lstat() (fs.FileInfo, error)  { return info{f}, nil }
func (f file) Open() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(f.text)), nil }

type info struct{ file file }

func (i info) Name() string       { return path.Base(i.file.name) }
func (i info) Size() int64        { return int64(len(i.file.text)) }
func (i info) Mode() fs.FileMode  { return 0o644 }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return false }
func (i info) Sys() any           { return nil }
