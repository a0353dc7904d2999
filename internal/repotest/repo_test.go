package repotest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// modulePath is the path of the root module.
const modulePath = "github.com/cheapgo/cheap"

// root returns the directory of the checkout.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	testcall.Must(t, err)
	return dir
}

// A tree is the checkout, which all tests read once. It is not changed after that.
type tree struct {
	names []string // with slashes, relative to the root, in order
	texts map[string]string
}

// readTree reads the files of the checkout. It leaves out what .gitignore says, whose patterns are
// for names, and git's own directory, which is a file in a worktree.
var readTree = sync.OnceValues(func() (*tree, error) {
	dir := filepath.Join("..", "..")
	patterns, err := os.ReadFile(filepath.Join(dir, ".gitignore"))
	if err != nil {
		return nil, err
	}
	ignored := strings.Fields(string(patterns))
	all := &tree{texts: map[string]string{}}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		switch {
		case name == ".git" && d.IsDir():
			return filepath.SkipDir
		case name == ".git" || !d.Type().IsRegular():
			return nil
		}
		isIgnored := slices.ContainsFunc(ignored, func(pattern string) bool {
			match, err := filepath.Match(pattern, name)
			return match && err == nil
		})
		if isIgnored {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		all.names = append(all.names, rel)
		all.texts[rel] = string(text)
		return nil
	})
	if err == nil && all.texts["go.mod"] == "" {
		err = errors.New(dir + " is not the root of the checkout")
	}
	return all, err
})

func checkout(t *testing.T) *tree {
	t.Helper()
	all, err := readTree()
	testcall.Must(t, err)
	return all
}

// read returns a file of the checkout.
func read(t *testing.T, name string) string {
	t.Helper()
	text, ok := checkout(t).texts[name]
	if !ok {
		t.Fatalf("the checkout has no file %s", name)
	}
	return text
}

// files returns the names of the files of the checkout.
func files(t *testing.T) []string {
	t.Helper()
	return checkout(t).names
}

// kept returns a function that calls f once for each name.
func kept[T any](f func(t *testing.T, name string) T) func(*testing.T, string) T {
	var mu sync.Mutex
	known := map[string]T{}
	return func(t *testing.T, name string) T {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		v, ok := known[name]
		if !ok {
			v = f(t, name)
			known[name] = v
		}
		return v
	}
}

// goEnv returns a variable of go env.
var goEnv = kept(func(t *testing.T, name string) string {
	return strings.TrimSpace(command(t, root(t), nil, "go", "env", name))
})

// command runs a command in dir, with more variables in its environment, and
// returns what it prints to its standard output. The test ends if it fails.
func command(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, &stdout, &stderr)
	}
	return stdout.String()
}

// goJSON runs the go command at the root of the checkout and decodes the one
// JSON value that it prints.
func goJSON(t *testing.T, value any, args ...string) {
	t.Helper()
	goJSONAt(t, root(t), value, args...)
}

// goJSONAt is goJSON in another folder.
func goJSONAt(t *testing.T, dir string, value any, args ...string) {
	t.Helper()
	out := command(t, dir, nil, append([]string{"go"}, args...)...)
	if err := json.Unmarshal([]byte(out), value); err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
}
