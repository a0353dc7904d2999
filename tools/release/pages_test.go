package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInstalling puts each module that programs import into a program beside the checkout, by the lines
// of README.md. TestRelease does what it says of a program without a clone.
func TestInstalling(t *testing.T) {
	if strings.TrimSpace(command(t, ".", nil, "go", "env", "CGO_ENABLED")) != "1" {
		return // some of the modules need cgo
	}
	checkout := strings.TrimSpace(command(t, ".", nil, "git", "rev-parse", "--show-toplevel"))
	readme, err := os.ReadFile(filepath.Join(checkout, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	const first, module = "go mod edit -replace=", "github.com/cheapgo/cheap"
	_, rest, found := strings.Cut(string(readme), "\n```sh\n"+first)
	script, _, ends := strings.Cut(rest, "```\n")
	if !found || !ends {
		t.Fatal("README.md has no lines for a clone")
	}
	_, needInspect, _ := strings.Cut(string(readme), "=../cheap/cmem`; ")
	needInspect, _, _ = strings.Cut(needInspect, " need inspect.")
	pages, err := filepath.Glob(filepath.Join(checkout, "x", "*", "go.mod"))
	if err != nil || len(pages) < 5 {
		t.Fatalf("modules in x: %q, %v", pages, err)
	}
	env := []string{"GOWORK=off", "GOFLAGS=-trimpath -buildvcs=false", "GOSUMDB=off"}
	for _, name := range append(pages, "cmem/go.mod", "inspect/go.mod", "vet/go.mod") {
		dir := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(name)), filepath.ToSlash(checkout)+"/")
		t.Run("module="+dir, func(t *testing.T) {
			replace := "-replace=" + module + "/" + dir + "=../cheap/" + dir + " "
			if strings.Contains(needInspect, dir) {
				replace += "-replace=" + module + "/inspect=../cheap/inspect "
			}
			top := t.TempDir()
			if err := os.Symlink(checkout, filepath.Join(top, "cheap")); err != nil {
				t.Fatal(err)
			}
			writeFile(t, "module example.com/hello\n\ngo 1.26.0\n", top, "hello", "go.mod")
			writeFile(t, "package hello\n\nimport _ \""+module+"/"+dir+"\"\n", top, "hello", "hello.go")
			command(t, filepath.Join(top, "hello"), env, "sh", "-ec", "go mod edit "+replace+"-replace="+script)
			command(t, filepath.Join(top, "hello"), env, "go", "build", "-mod=readonly", ".")
		})
	}
}
