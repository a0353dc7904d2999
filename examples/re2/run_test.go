//go:build cgo && re2

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{
		"poem.txt":           "the fog comes\non little cat feet.\n\nIt sits looking\n",
		"more/numbers.txt":   "7\nforty-two\n2026-11-22", // without a line break at its end
		"more/binary":        "\x00cat\n",
		"more/deep/cat.text": "cat\n",
	} {
		testcall.Must(t, os.MkdirAll(filepath.Dir(name), 0o777))
		testcall.Must(t, os.WriteFile(name, []byte(text), 0o666))
	}
	for _, c := range []struct {
		args   string
		code   int
		stdout string
		stderr string // the first part
	}{
		{`cat .`, 0, "more/deep/cat.text:cat\npoem.txt:on little cat feet.\n", ""},
		{`-n \bc\w+ poem.txt`, 0, "poem.txt:1:the fog comes\npoem.txt:2:on little cat feet.\n", ""},
		{`-n -e ^\d+ -e ^$ it poem.txt more`, 0, "poem.txt:2:on little cat feet.\npoem.txt:3:\npoem.txt:4:It sits looking\nmore/numbers.txt:1:7\nmore/numbers.txt:3:2026-11-22\n", ""},
		{`put`, 0, "standard input\n", ""},
		{`dog .`, 1, "", ""},
		{`-h`, 0, "usage: re2 [flags] expression", ""},
		{`cat missing`, 2, "", "re2: lstat missing: "},
		{`a(b .`, 2, "", "re2: re2: \"a(b\": missing ): a(b\n"},
		{`-e a(b c .`, 2, "", "re2: re2: [\"a(b\" \"c\"]: missing ): a(b\n"},
		{``, 2, "", "re2: no expression is given\n"},
		{`-x`, 2, "", "re2: flag provided but not defined: -x\n"},
	} {
		t.Run(c.args, func(t *testing.T) {
			var stdout, stderr strings.Builder
			code := run(strings.Fields(c.args), strings.NewReader("a line\nstandard input\n"), &stdout, &stderr)
			got := stdout.String()
			if c.args == "-h" {
				got = got[:min(len(got), len(c.stdout))]
			}
			if code != c.code || got != c.stdout {
				t.Errorf("exit code %d, and\n%s\nwant %d, and\n%s", code, stdout.String(), c.code, c.stdout)
			}
			if !strings.HasPrefix(stderr.String(), c.stderr) || c.stderr == "" && stderr.Len() > 0 {
				t.Errorf("stderr %q, want %q", stderr.String(), c.stderr)
			}
		})
	}
}
