//go:build cgo && libgit2

package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	h := history(t, 500)
	empty := t.TempDir()
	top := h.want.Files[0]
	first := fmt.Sprintf("changes   lines  file\n%7d %7d  %s\n", top.Changes, top.Lines, top.Path)
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string // the first part of each
	}{
		{[]string{"-n", "1", h.dir}, 0, first, ""},
		{[]string{"-n", "1", "-stats", h.dir}, 0, first, fmt.Sprintf("own: %d commits in ", h.want.Commits)},
		{[]string{"-n", "1", "-binding", "own-close", "-stats", h.dir}, 0, first, "own-close: "},
		{[]string{"-n", "1", "-binding", "cleanup", "-stats", h.dir}, 0, first, "cleanup: "},
		{[]string{"-n", "1", "-binding", "manual", h.dir}, 0, first, ""},
		{[]string{"-n", "100000", h.dir}, 0, first, ""},
		{[]string{"-n", "0", h.dir}, 0, "changes   lines  file\n", ""},
		{[]string{"-h"}, 0, "usage: git [flags] [repository]\n", ""},
		{[]string{empty}, 1, "", "git: open "},
		{[]string{"-n", "x"}, 2, "", `git: invalid value "x" for flag -n`},
		{[]string{"-n", "-1"}, 2, "", "git: -n -1: a number of files is not negative\n"},
		{[]string{"-binding", "none"}, 2, "", "git: -binding none: there are own, own-close, cleanup, manual\n"},
		{[]string{"-unknown"}, 2, "", "git: flag provided but not defined: -unknown\n"},
		{[]string{"a", "b"}, 2, "", "git: 2 repositories are given, and one can be read\n"},
	} {
		name := strings.NewReplacer(h.dir, "history", empty, "empty").Replace(strings.Join(c.args, " "))
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			if code := run(t.Context(), c.args, nil, &stdout, &stderr); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if !strings.HasPrefix(stdout.String(), c.stdout) || c.stdout == "" && stdout.Len() > 0 {
				t.Errorf("stdout %q, want %q", stdout.String(), c.stdout)
			}
			if !strings.HasPrefix(stderr.String(), c.stderr) || c.stderr == "" && stderr.Len() > 0 {
				t.Errorf("stderr %q, want %q", stderr.String(), c.stderr)
			}
			if strings.Count(stderr.String(), "\n") > 1 {
				t.Errorf("more than a line on stderr: %q", stderr.String())
			}
		})
	}
	settled(t)
}
