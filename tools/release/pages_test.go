package main

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// TestPages runs the lines of the page of each module that programs import, in a program beside the
// checkout. TestRelease does what the page says of a program without a clone.
func TestPages(t *testing.T) {
	if strings.TrimSpace(command(t, ".", nil, "go", "env", "CGO_ENABLED")) != "1" {
		return // some of the modules need cgo
	}
	checkout := strings.TrimSpace(command(t, ".", nil, "git", "rev-parse", "--show-toplevel"))
	env := []string{"GOWORK=off", "GOFLAGS=-trimpath -buildvcs=false", "GOSUMDB=off"}
	found := 0
	for _, pattern := range []string{"*/README.md", "x/*/README.md"} {
		names, err := filepath.Glob(filepath.Join(checkout, filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			_, script, _ := strings.Cut(string(text), "```sh\ngo mod edit -require=")
			script, _, ok := strings.Cut(script, "```\n")
			if !ok {
				continue
			}
			found++
			script = "go mod edit -require=" + script
			dir, err := filepath.Rel(checkout, filepath.Dir(name))
			if err != nil {
				t.Fatal(err)
			}
			module := path.Join("github.com/cheapgo/cheap", filepath.ToSlash(dir))
			t.Run("module="+filepath.ToSlash(dir), func(t *testing.T) {
				top := t.TempDir()
				if err := os.Symlink(checkout, filepath.Join(top, "cheap")); err != nil {
					t.Fatal(err)
				}
				writeFile(t, "module example.com/hello\n\ngo 1.26.0\n", top, "hello", "go.mod")
				writeFile(t, "package hello\n\nimport _ \""+module+"\"\n", top, "hello", "hello.go")
				command(t, filepath.Join(top, "hello"), env, "sh", "-ec", script)
				command(t, filepath.Join(top, "hello"), env, "go", "build", "-mod=readonly", ".")
			})
		}
	}
	if found < 10 {
		t.Errorf("%d pages have such lines", found)
	}
}
