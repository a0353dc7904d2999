//go:build browser

package browser

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/lab/internal/report"
)

// built is the folder that has the command.
var built string

// TestMain builds the command.
func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		var err error
		if built, err = os.MkdirTemp("", "cheap-browser-*"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(built)
		build := exec.Command("go", "build", "-o", filepath.Join(built, "cheap"), ".")
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

// benchPage writes the page of a report, and returns its file.
func benchPage(t *testing.T, r *result.Report) string {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "report.html"))
	testcall.Must(t, err)
	testcall.Must(t, errors.Join(report.Page(f, r), f.Close()))
	return f.Name()
}
