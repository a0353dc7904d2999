//go:build cgo && (amd64 || arm64)

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestRecordRights refuses a program that gets other rights when it starts.
func TestRecordRights(t *testing.T) {
	t.Parallel()
	type marked struct{ path, want string }
	programs := []marked{{"/usr/bin/su", "is setuid, of the user 0"}, {"/usr/bin/chage", "is setgid, of the group "}}
	if os.Getuid() == 0 { // to root these two are as any other, and root can make others
		text, err := os.ReadFile(theRecorded(t))
		testcall.Must(t, err)
		folder := t.TempDir()
		programs = nil
		for name, mode := range map[string]os.FileMode{"setuid": os.ModeSetuid | 0o755, "setgid": os.ModeSetgid | 0o755} {
			path := filepath.Join(folder, name)
			testcall.Must(t, os.WriteFile(path, text, 0o755))
			testcall.Must(t, os.Chown(path, 1, 1))
			testcall.Must(t, os.Chmod(path, mode))
			programs = append(programs, marked{path, "is " + name + ", of the "})
		}
	}
	for _, p := range programs {
		// The dynamic linker prints this unless the program has other rights, which
		// no_new_privs and nosuid prevent.
		command := exec.Command(p.path, "none")
		command.Env = []string{"LD_SHOW_AUXV=1"}
		command.Stdin = strings.NewReader("")
		if text, _ := command.Output(); bytes.Contains(text, []byte("AT_SECURE:")) {
			t.Logf("%s gets no other rights here", p.path)
			continue
		}
		r := record(t, p.path, "leak")
		if r.code != exitUsage || !strings.Contains(r.stderr, p.want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%s: code %d, want %q in %q", p.path, r.code, p.want, r.stderr)
		}
	}
}
