//go:build browser

package browser

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cheapgo/cheap/internal/result"
)

// built is the folder that has the command.
var built string

// TestMain builds the command. Without the names of its sources in it, it looks for the module lab in
// the working directory, and not in this checkout.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		var err error
		if built, err = os.MkdirTemp("", "cheap-browser-*"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(built)
		build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(built, "cheap"), ".")
		build.Dir = "../../cmd/cheap"
		build.Env = append(build.Environ(), "GOWORK=off")
		if text, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "cmd/cheap: %v\n%s", err, text)
			return 1
		}
		return m.Run()
	}())
}

// runCheap runs the command in a folder.
func runCheap(t *testing.T, folder string, args ...string) {
	t.Helper()
	c := exec.Command(filepath.Join(built, "cheap"), args...)
	c.Dir = folder
	if text, err := c.CombinedOutput(); err != nil {
		t.Fatalf("cheap %q: %v\n%s", args, err, text)
	}
}

// laboratory is a program that measures nothing: it sends the report of a file.
const laboratory = `package main

import (
	"io"
	"os"
)

func main() {
	f, err := os.Open("message.json")
	if err == nil {
		_, err = io.Copy(os.Stdout, f)
	}
	if err != nil {
		panic(err)
	}
}
`

// pages are the files of pages, by the message of the laboratory.
var pages = map[string]string{}

// benchPage has the command write the page of a report, and returns its file.
func benchPage(t *testing.T, r *result.Report) string {
	t.Helper()
	message, err := json.Marshal(result.Message{Report: r})
	if err != nil {
		t.Fatal(err)
	}
	if page := pages[string(message)]; page != "" {
		return page
	}
	folder := filepath.Join(built, fmt.Sprint("report-", len(pages)))
	if err := os.MkdirAll(filepath.Join(folder, "lab"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"lab/go.mod":   "module github.com/cheapgo/cheap/lab\n",
		"lab/main.go":  laboratory,
		"message.json": string(message),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	runCheap(t, folder, "bench", "-format=html", "-o=report.html")
	pages[string(message)] = filepath.Join(folder, "report.html")
	return pages[string(message)]
}
