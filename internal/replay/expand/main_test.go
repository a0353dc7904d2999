package main

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

var directive = regexp.MustCompile(`(?m)^//go:generate go run github\.com/cheapgo/cheap/internal/replay/expand -o (\S+) (.*)$`)

// TestUpToDate expands the template of each directive in the tree, and compares the file.
func TestUpToDate(t *testing.T) {
	found := 0
	err := filepath.WalkDir(filepath.Join("..", "..", ".."), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range directive.FindAllSubmatch(text, -1) {
			found++
			folder := filepath.Dir(path)
			want, err := expand(folder, strings.Fields(string(m[2])))
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if got, err := os.ReadFile(filepath.Join(folder, string(m[1]))); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s in %s is not what its template makes (%v): run go generate there", m[1], folder, err)
			}
		}
		return nil
	})
	testcall.Must(t, err)
	if found < 2 { // those of this module
		t.Errorf("found %d directives", found)
	}
}
