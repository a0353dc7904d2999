//go:build cgo && zstd

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/examples/zstd/internal/zstd"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// want runs the command and returns what it prints.
func want(t *testing.T, code int, stdin []byte, stderr string, args ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	var errs strings.Builder
	if got := run(t.Context(), args, bytes.NewReader(stdin), &out, &errs); got != code || errs.String() != stderr {
		t.Errorf("%q: exit code %d and %q, want %d and %q", args, got, errs.String(), code, stderr)
	}
	if zstd.InUse() != 0 {
		t.Errorf("%q: %d bytes are in use", args, zstd.InUse())
	}
	return out.Bytes()
}

func TestRun(t *testing.T) {
	text := []byte(strings.Repeat("all work and no play\n", 10_000))
	file := filepath.Join(t.TempDir(), "text")
	testcall.Must(t, os.WriteFile(file, text, 0o666))
	one := want(t, 0, text, "")
	if len(one) > len(text)/10 {
		t.Errorf("%d bytes, compressed to %d", len(text), len(one))
	}
	if got := want(t, 0, one, "", "-d"); !bytes.Equal(got, text) {
		t.Errorf("%d bytes, want %d", len(got), len(text))
	}
	two := want(t, 0, nil, "", "-level=19", file, file)
	if got := want(t, 0, append(two, one...), "", "-d"); !bytes.Equal(got, bytes.Repeat(text, 3)) {
		t.Errorf("%d bytes, want %d", len(got), 3*len(text))
	}
	want(t, 1, one[:len(one)-1], "zstd: unexpected EOF\n", "-d")
	want(t, 1, text, "zstd: Unknown frame descriptor\n", "-d")
	want(t, 1, nil, "zstd: open "+file+"/: not a directory\n", file, file+"/")
	want(t, 2, nil, "zstd: -level 20: it is from 1 to 19\n", "-level=20")
	want(t, 2, nil, "zstd: -forget takes a number of compressions, and no -d\n", "-forget=3", "-d")
	want(t, 2, nil, "zstd: flag provided but not defined: -unknown\n", "-unknown")
	if help := want(t, 0, nil, "", "-h"); !bytes.HasPrefix(help, []byte("usage: zstd [flags] [file...]\n")) {
		t.Errorf("help is %q", help)
	}
}

var most = regexp.MustCompile(`^own +at most +([0-9.]+) MiB in use, 0 bytes after collections
own and pace +at most +([0-9.]+) MiB in use, 0 bytes after collections
$`)

func TestForget(t *testing.T) {
	out := want(t, 0, []byte("short"), "", "-forget=250")
	m := most.FindSubmatch(out)
	if m == nil {
		t.Fatalf("the output is %q", out)
	}
	without, _ := strconv.ParseFloat(string(m[1]), 64)
	with, _ := strconv.ParseFloat(string(m[2]), 64)
	if without < 300 || with <= 0 || with > without/2 {
		t.Errorf("%v MiB without pace, and %v with it", without, with)
	}
}
