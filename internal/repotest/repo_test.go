package repotest

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// modulePath is the path of the root module.
const modulePath = "github.com/cheapgo/cheap"

// root returns the directory of the checkout.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// read returns a file of the checkout.
func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// files returns the files of the checkout, as paths with slashes relative to
// its root. It leaves out what .gitignore says, whose patterns are for names, and
// git's own directory, which is a file in a worktree.
func files(t *testing.T) []string {
	t.Helper()
	dir := root(t)
	ignored := strings.Fields(read(t, ".gitignore"))
	var names []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		switch {
		case name == ".git" && d.IsDir():
			return filepath.SkipDir
		case name == ".git" || d.IsDir():
			return nil
		}
		isIgnored := slices.ContainsFunc(ignored, func(pattern string) bool {
			match, err := filepath.Match(pattern, name)
			return match && err == nil
		})
		if d.Type().IsRegular() && !isIgnored {
			rel, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			names = append(names, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(names, "go.mod") {
		t.Fatalf("%s is not the root of the checkout", dir)
	}
	return names
}

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
