//go:build linux && (amd64 || arm64)

package shared

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
)

// TestAddressLimit makes a file where there are too few addresses for it.
func TestAddressLimit(t *testing.T) {
	output, passed := testchild.Test(t, func(t *testing.T) {
		testcall.Must(t, syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: Size / 2, Max: Size / 2}))
		if _, err := Create(nil); err == nil || !strings.Contains(err.Error(), "there is a limit of addresses (ulimit -v)") {
			t.Error(err)
		}
	})
	if !passed {
		t.Error(output)
	}
}

// TestFolders makes folders and files in several goroutines. Each removes what is left, and of the
// others is nothing left: they hold their locks.
func TestFolders(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 50 {
				folder, err := MakeFolder(func(string) {})
				if err != nil {
					t.Error(err)
					return
				}
				file, err := makeFile(folder.Path)
				if err != nil {
					t.Error(err)
					return
				}
				removeLeft(os.TempDir(), folder.Path, func(string) {})
				for _, name := range []string{filepath.Join(folder.Path, lockName), file.Name()} {
					if _, err := os.Stat(name); err != nil {
						t.Error(err)
					}
				}
				file.Close()
				removeLeft(os.TempDir(), folder.Path, func(string) {})
				if _, err := os.Stat(file.Name()); !os.IsNotExist(err) {
					t.Errorf("a file without a lock is left: %v", err)
				}
				if err := folder.Remove(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}
