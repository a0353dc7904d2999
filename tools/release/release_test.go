package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// version is the version that the tests make.
const version = "v0.1.0"

// command runs a command in a folder, with additions to the environment, and returns what it prints
// to stdout.
func command(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), args[0], args[1:]...)
	c.Dir = dir
	c.Env = append(c.Environ(), env...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String()
}

func writeFile(t *testing.T, text string, elem ...string) {
	t.Helper()
	name := filepath.Join(elem...)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// someone is an author, whom a machine that only tests may not have.
func someone(t *testing.T) {
	t.Helper()
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		t.Setenv("GIT_"+role+"_NAME", "release test")
		t.Setenv("GIT_"+role+"_EMAIL", "test@localhost")
	}
}

// A world is what a user of a version has: a module proxy, and nothing else.
type world struct {
	bare    string // the repository, with the tags
	release *release
	tree    *tree    // at the commit of the tags
	env     []string // of the go command
	bin     string   // where go install puts programs
}

// proxied returns the environment in which the go command has the modules in a folder of zip files,
// and others from where they are always from, the module cache first. The module cache is empty,
// because the version that is tested is another one each time.
func proxied(t *testing.T, folder string) []string {
	t.Helper()
	outside := strings.Split(command(t, ".", nil, "go", "env", "GOPROXY", "GOMODCACHE"), "\n")
	proxies := []string{fileURL(folder), fileURL(filepath.Join(outside[1], "cache", "download"))}
	for proxy := range strings.SplitSeq(outside[0], ",") {
		if proxy != "direct" {
			proxies = append(proxies, proxy)
		}
	}
	return []string{
		"GOPROXY=" + strings.Join(proxies, ","), "GOMODCACHE=" + filepath.Join(t.TempDir(), "mod"), "GOVCS=*:off",
		"GOWORK=off", "GOFLAGS=-modcacherw -trimpath", // the build cache knows packages without their folders
		"GOSUMDB=off", // it has not heard of the version; nor have others changed since they were in the module cache
	}
}

func fileURL(folder string) string {
	folder = filepath.ToSlash(folder)
	if !strings.HasPrefix(folder, "/") {
		folder = "/" + folder
	}
	return "file://" + folder
}

// published makes the version in a bare clone of the checkout, at the commit that the checkout is
// at. The go command fetches the modules by their tags, as a module proxy does.
func published(t *testing.T) *world {
	t.Helper()
	someone(t)
	top := t.TempDir()
	w := &world{bare: filepath.Join(top, "cheap.git"), bin: filepath.Join(top, "bin")}
	checkout := strings.TrimSpace(command(t, ".", nil, "git", "rev-parse", "--show-toplevel"))
	command(t, ".", nil, "git", "clone", "-q", "--bare", checkout, w.bare)
	// A later version of the same modules would be another one.
	for tag := range strings.FieldsSeq(command(t, w.bare, nil, "git", "tag")) {
		command(t, w.bare, nil, "git", "tag", "-d", tag)
	}
	var err error
	if w.release, err = makeRelease(w.bare, "HEAD", version); err != nil {
		t.Fatal(err)
	}
	if head := strings.TrimSpace(command(t, checkout, nil, "git", "rev-parse", "HEAD")); w.release.from != head {
		t.Fatalf("the version is of commit %s, and the checkout is at %s", w.release.from, head)
	}
	if w.tree, err = git(w.bare).tree(w.release.at); err != nil {
		t.Fatal(err)
	}
	fetched := filepath.Join(top, "fetched")
	writeFile(t, "[url \""+fileURL(w.bare)+"\"]\n\tinsteadOf = https://github.com/cheapgo/cheap\n", top, "gitconfig")
	direct := []string{
		"GIT_CONFIG_GLOBAL=" + filepath.Join(top, "gitconfig"), "GOPROXY=direct", "GOPRIVATE=*", "GOMODCACHE=" + fetched,
		"GOWORK=off", "GOFLAGS=-modcacherw",
	}
	args := []string{"go", "mod", "download", "-json"}
	for _, m := range w.release.modules {
		args = append(args, m.path+"@"+version)
	}
	w.compareSums(t, command(t, top, direct, args...))
	proxy := filepath.Join(fetched, "cache", "download")
	for _, m := range w.release.modules {
		writeFile(t, version+"\n", proxy, filepath.FromSlash(m.path), "@v", "list")
	}
	w.env = append(proxied(t, proxy), "GOBIN="+w.bin)
	return w
}

// compareSums compares what go mod download prints of the modules with the sums that are in the
// go.sum files of others.
func (w *world) compareSums(t *testing.T, printed string) {
	t.Helper()
	got := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(printed)); ; {
		var m struct{ Path, Sum, GoModSum string }
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		got[m.Path] = m.Sum + " " + m.GoModSum
	}
	for _, m := range w.release.modules {
		if want := m.sum + " " + m.modSum; got[m.path] != want {
			t.Errorf("the sums of %s are %q for the go command, %q for this one", m.path, got[m.path], want)
		}
	}
}

// packages returns the import paths of packages of a module that any program may import.
func (w *world) packages(m *mod) (list []string) {
	found := map[string]bool{}
	for name, text := range w.tree.files {
		dir := path.Dir(name)
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || w.moduleOf(name) != m.dir {
			continue
		}
		inside := slices.ContainsFunc(strings.Split(dir, "/"), func(part string) bool { return part == "internal" || part == "testdata" })
		if !inside && !bytes.Contains(append([]byte("\n"), text...), []byte("\npackage main\n")) {
			found[path.Join("github.com/cheapgo/cheap", dir)] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// moduleOf returns the folder of the module that a file is in.
func (w *world) moduleOf(name string) string {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, ok := w.tree.files[dir+"/go.mod"]; ok {
			return dir
		}
	}
	return "."
}

// TestRelease makes a version of the commit that the checkout is at, and uses it as programs do that
// have a module proxy and no clone.
func TestRelease(t *testing.T) {
	if strings.TrimSpace(command(t, ".", nil, "go", "env", "CGO_ENABLED")) != "1" {
		return // some of the modules need cgo
	}
	w := published(t)
	t.Run("commits", w.commits)
	t.Run("go get", w.goGet)
	t.Run("go install", w.goInstall)
	t.Run("first", w.first)
	t.Run("tagged", w.tagged)
	t.Run("next", w.next)
}

// commits looks at what the two commits have changed.
func (w *world) commits(t *testing.T) {
	g := git(w.bare)
	from, err := g.tree(w.release.from)
	if err != nil {
		t.Fatal(err)
	}
	next, err := g.tree(w.release.next)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range w.tree.files {
		base := path.Base(name)
		if path.Ext(name) == ".md" {
			if found := noVersion.Find(text); found != nil {
				t.Errorf("%s says with a version: %q", name, found)
			}
		} else if !bytes.Equal(text, from.files[name]) && base != "go.mod" && base != "go.sum" && name != commitFile {
			t.Errorf("the commit of the tags changes %s", name)
		}
	}
	for name, text := range next.files {
		if old := from.files[name]; path.Ext(name) == ".md" {
			if !bytes.Equal(text, w.tree.files[name]) {
				t.Errorf("the commit after it has not the %s of the tags", name)
			}
		} else if path.Base(name) != "go.mod" && !bytes.Equal(text, old) {
			t.Errorf("the commit after it differs in %s", name)
		} else if line := changedLine(text, old); line != "" {
			t.Errorf("the commit after it changes %s in line %q", name, line)
		}
	}
	if len(from.files) != len(w.tree.files) || len(from.files) != len(next.files) {
		t.Errorf("the commits have %d, %d and %d files", len(from.files), len(w.tree.files), len(next.files))
	}
	for _, m := range w.release.modules {
		if text := w.tree.text(m.file("go.mod")); bytes.Contains(text, []byte("replace")) {
			t.Errorf("%s has a replace line:\n%s", m.file("go.mod"), text)
		}
	}
}

// noVersion matches what a document must not say when there is a version.
var noVersion = regexp.MustCompile(`(?i).*(until (there is|the first)|has a tag|none yet).*`)

// changedLine returns the first line of a go.mod that differs from its old text in more than the
// version of a module of the repository.
func changedLine(text, old []byte) string {
	lines, olds := strings.Split(string(text), "\n"), strings.Split(string(old), "\n")
	if len(lines) != len(olds) {
		return "of the end"
	}
	for i, line := range lines {
		same := line == olds[i]
		if before, after, found := strings.Cut(line, " "+version); found && strings.Contains(line, "github.com/cheapgo/cheap") {
			same = same || strings.HasPrefix(olds[i], before+" v") && strings.HasSuffix(olds[i], after)
		}
		if !same {
			return line
		}
	}
	return ""
}

// goGet gets each module alone, in an empty module, and compiles a package that imports all of its
// packages.
func (w *world) goGet(t *testing.T) {
	for _, m := range w.release.modules {
		packages := w.packages(m)
		if len(packages) == 0 || m.dir == "lab" {
			continue // it has programs; nobody imports it
		}
		t.Run("module="+m.dir, func(t *testing.T) {
			dir := t.TempDir()
			command(t, dir, w.env, "go", "mod", "init", "example.com/hello")
			command(t, dir, w.env, "go", "get", m.path+"@"+version)
			if len(packages) > 1 {
				command(t, dir, w.env, "go", "get", m.path+"/...@"+version)
			}
			writeFile(t, "package hello\n\nimport (\n\t_ \""+strings.Join(packages, "\"\n\t_ \"")+"\"\n)\n", dir, "hello.go")
			command(t, dir, w.env, "go", "build", "-mod=readonly", ".")
			for _, r := range requirements(t, dir) {
				if strings.HasPrefix(r, "github.com/cheapgo/") && !strings.HasSuffix(r, " "+version) {
					t.Errorf("go.mod requires %s", r)
				}
			}
		})
	}
}

// requirements returns what a go.mod requires.
func requirements(t *testing.T, dir string) (list []string) {
	t.Helper()
	name := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := modfile.Parse(name, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range f.Require {
		list = append(list, r.Mod.Path+" "+r.Mod.Version)
	}
	return list
}

// goInstall installs the commands, and runs two.
func (w *world) goInstall(t *testing.T) {
	dir := t.TempDir()
	for _, program := range []string{"cmd/cheap", "vet/cmd/cheapvet", "lab"} {
		command(t, dir, w.env, "go", "install", "github.com/cheapgo/cheap/"+program+"@"+version)
	}
	cheap, cheapvet := filepath.Join(w.bin, "cheap"), filepath.Join(w.bin, "cheapvet")
	if got, want := command(t, dir, nil, cheap, "version"), "cheap "+version+", commit "+w.release.from[:12]+", "; !strings.HasPrefix(got, want) {
		t.Errorf("cheap version prints %q, want %q", got, want)
	}
	writeFile(t, "module example.com/hello\n\ngo 1.26.0\n", dir, "go.mod")
	writeFile(t, "package hello\n\n// #include <stdlib.h>\nimport \"C\"\n\nfunc F() { C.CString(\"lost\"); C.free(nil) }\n", dir, "hello.go")
	c := exec.CommandContext(t.Context(), "go", "vet", "-vettool="+cheapvet, ".")
	c.Dir, c.Env = dir, append(c.Environ(), w.env...)
	if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "C.CString") {
		t.Errorf("go vet with cheapvet: %v\n%s", err, out)
	}
}

// tagged builds the modules from a checkout of the tags, without a workspace: the go.sum files have
// what is needed.
func (w *world) tagged(t *testing.T) {
	dir := w.checkout(t, w.release.at)
	for _, m := range w.release.modules {
		command(t, filepath.Join(dir, m.dir), w.env, "go", "list", "-mod=readonly", "-deps", "./...")
	}
}

// next looks at a checkout of the commit after the tags: all modules agree about the version, and
// their replace lines lead to the checkout.
func (w *world) next(t *testing.T) {
	after, err := git(w.bare).tree(w.release.next)
	if err != nil {
		t.Fatal(err)
	}
	all, err := after.modules()
	if err != nil {
		t.Fatal(err)
	}
	dir := w.checkout(t, w.release.next)
	for _, m := range all {
		for _, r := range requirements(t, filepath.Join(dir, m.dir)) {
			name, v, _ := strings.Cut(r, " ")
			if _, ours := all[name]; ours && v != version {
				t.Errorf("%s requires %s", m.path, r)
			}
		}
	}
	for _, m := range w.release.modules {
		command(t, filepath.Join(dir, m.dir), w.env, "go", "list", "-mod=readonly", "-deps", "./...")
	}
	command(t, dir, append(slices.Clone(w.env), "GOWORK="), "go", "list", "work")
}

func (w *world) checkout(t *testing.T, commit string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "cheap")
	command(t, ".", nil, "git", "clone", "-q", "--no-checkout", w.bare, dir)
	command(t, dir, nil, "git", "checkout", "-q", "--detach", commit)
	return dir
}

// first runs what README.md says that a program with a version does.
func (w *world) first(t *testing.T) {
	_, text, _ := strings.Cut(string(w.tree.text("README.md")), "\n## Installing\n")
	_, script, _ := strings.Cut(text, "```sh\n")
	script, _, found := strings.Cut(script, "```\n")
	if !found || !strings.Contains(script, "\ngo get github.com/cheapgo/cheap@latest\n") {
		t.Fatalf("README.md installs by\n%s", script)
	}
	dir := filepath.Join(filepath.Dir(w.checkout(t, w.release.at)), "hello")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(command(t, dir, w.env, "sh", "-ec", script))
	slices.Sort(got)
	// seq 100000 has each number that is written with digits of 12345 that follow each other.
	want := []string{"1", "12", "123", "1234", "12345", "2", "23", "234", "2345", "3", "34", "345", "4", "45", "5"}
	if !slices.Equal(got, want) {
		t.Errorf("the first program prints %q, want %q", got, want)
	}
}
