package repotest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// outside is the environment of a program that knows the checkout only by a
// replace line. The workspace would know it anyway. What go mod tidy adds is
// golang.org/x/sys, whose sum the checkout's own go.sum has vouched for, so the
// network is not asked again. With -trimpath the packages do not depend on the
// folder that they are in, so the build cache has them.
var outside = []string{"GOWORK=off", "GOFLAGS=-buildvcs=false -trimpath", "GONOSUMDB=golang.org/x/sys"}

// blocksOf returns the code blocks of README.md in a language.
func blocksOf(t *testing.T, lang string) []codeBlock {
	t.Helper()
	var blocks []codeBlock
	for _, b := range parseDocument(t, "README.md").blocks {
		if b.lang == lang {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// TestCheckout does what README.md says about a program that depends on a
// checkout, with the first program that it shows, and compares what the
// program prints.
func TestCheckout(t *testing.T) {
	t.Parallel()
	dir := dependent(t, map[string]string{"main.go": blocksOf(t, "go")[0].text})
	got := runLines(t, dir, "go run .")
	if want := blocksOf(t, "text")[0].text; got != want {
		t.Errorf("the first program printed\n%s\nREADME.md says\n%s", got, want)
	}
}

// TestSnippets builds the other pieces of Go that README.md shows, and runs those
// that a block of output follows.
func TestSnippets(t *testing.T) {
	t.Parallel()
	cgo := goEnv(t, "CGO_ENABLED") == "1"
	all := parseDocument(t, "README.md").blocks
	programs := map[string]string{}
	prints := map[string]string{} // by the folder of the program
	for i, b := range all {
		if b.lang != "go" || b == blocksOf(t, "go")[0] {
			continue
		}
		prog := program(b.text)
		if strings.Contains(prog, modulePath+"/") && !cgo {
			continue // libc is empty without it
		}
		folder := fmt.Sprintf("line%d", b.line)
		programs[folder+"/main.go"] = prog
		if i+1 < len(all) && all[i+1].lang == "text" {
			prints[folder] = all[i+1].text
		}
	}
	dir := dependent(t, programs)
	runLines(t, dir, "go vet ./...")
	for name := range programs {
		folder := path.Dir(name)
		want, ok := prints[folder]
		if !ok {
			// What cgo leaves to the linker, vet does not see. The build cache has what go run has linked,
			// so the program is built by go run, with a command that does not start it.
			command(t, dir, outside, "go", "run", "-exec=go version", "./"+folder)
			continue
		}
		if got := runLines(t, dir, "go run ./"+folder); got != want {
			t.Errorf("README.md:%s: the program printed\n%s\nREADME.md says\n%s", strings.TrimPrefix(folder, "line"), got, want)
		}
	}
	if len(prints) == 0 && cgo {
		t.Error("no program but the first is run")
	}
}

// dependent makes a module with files beside a link to the checkout, by the
// commands of README.md, and returns its directory.
func dependent(t *testing.T, texts map[string]string) string {
	t.Helper()
	top := t.TempDir()
	if err := os.Symlink(root(t), filepath.Join(top, "cheap")); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "hello")
	writeFiles(t, dir, texts)
	for _, b := range blocksOf(t, "sh") {
		if !strings.Contains(b.text, "-replace=") {
			continue
		}
		setup, ok := strings.CutSuffix(b.text, "go run .\n")
		if !ok {
			t.Fatalf("README.md:%d: the commands do not end by running the program", b.line)
		}
		runLines(t, dir, setup)
		return dir
	}
	t.Fatal("README.md does not say how a program depends on a checkout")
	return ""
}

// runLines runs commands, one a line, and returns what they print.
func runLines(t *testing.T, dir, lines string) string {
	t.Helper()
	var out string
	for line := range strings.Lines(lines) {
		out += command(t, dir, outside, strings.Fields(line)...)
	}
	return out
}

// program makes a program of statements, unless it is one.
func program(text string) string {
	if strings.HasPrefix(text, "package ") {
		return text
	}
	var imports strings.Builder
	for _, path := range []string{"errors", "fmt", "log", "time", "unsafe", modulePath, modulePath + "/libc", modulePath + "/own", modulePath + "/pace"} {
		if regexp.MustCompile(`\b` + filepath.Base(path) + `\.[A-Z]`).MatchString(text) {
			imports.WriteString("import \"" + path + "\"\n")
		}
	}
	return "package main\n\n" + imports.String() + "\nfunc main() {\n" + text + "}\n"
}
