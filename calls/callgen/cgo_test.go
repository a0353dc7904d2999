package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestFlags reads the #cgo lines that are true of a package, with quotes and conditions, and not
// those of files that are not compiled.
func TestFlags(t *testing.T) {
	needCompiler(t)
	dir := filepath.Join(t.TempDir(), "a folder")
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		testcall.Must(t, os.MkdirAll(filepath.Dir(name), 0o777))
		testcall.Must(t, os.WriteFile(name, []byte(text), 0o666))
	}
	other := "windows"
	if runtime.GOOS == other {
		other = "linux"
	}
	write("headers/one/one.h", "typedef short one;\n")
	write("headers/two/two.h", "typedef char two;\n")
	write("binding.go", `//go:build cgo && special

package binding

/*
#cgo CFLAGS: "-I${SRCDIR}/headers/one" -Iheaders/two
#cgo `+runtime.GOOS+`,`+runtime.GOARCH+`,!never CFLAGS: -DTHREE="long long"
#cgo special CFLAGS: -DFOUR=float
#cgo `+other+` special,!special CFLAGS: -DFOUR=char
#include <one.h>
#include <two.h>
static one f(two x, THREE y, FOUR z, FIVE a, SIX b) { return x; }
*/
import "C"
`)
	write("with.go", "//go:build special\n\npackage binding\n\n// #cgo CFLAGS: -DFIVE='unsigned char'\nimport \"C\"\n")
	write("binding_"+other+".go", "package binding\n\n// #cgo CFLAGS: -DFIVE=broken\n// #cgo pkg-config: there-is-no-such-package\nimport \"C\"\n")
	write("tool.go", "//go:build ignore\n\npackage main\n\n// #cgo CFLAGS: -Dstatic=broken\nimport \"C\"\n")
	t.Setenv("CGO_CPPFLAGS", "'-DSIX=unsigned short'")
	out := filepath.Join(dir, "lists.go")
	var stderr bytes.Buffer
	if code := run([]string{"-from", filepath.Join(dir, "binding.go"), "-o", out, "f"}, &stderr); code != 0 {
		t.Fatal(stderr.String())
	}
	text, err := os.ReadFile(out)
	testcall.Must(t, err)
	if want := "F(x int8, y int64, z float32, a uint8, b uint16) calls.Result"; !strings.Contains(string(text), want) {
		t.Errorf("no %q in\n%s", want, text)
	}
}

// TestSplitQuoted splits flags.
func TestSplitQuoted(t *testing.T) {
	for text, want := range map[string][]string{
		"":                         nil,
		" -a  -b\t-c\n":            {"-a", "-b", "-c"},
		`-DX="a b" 'c d'e`:         {"-DX=a b", "c de"},
		`a\ b \\ \" '"' "'" '' ""`: {"a b", `\`, `"`, `"`, "'", "", ""},
	} {
		if got, err := splitQuoted(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{`"a`, `'`, `a\`} {
		if got, err := splitQuoted(text); err == nil {
			t.Errorf("%q: %q, want an error", text, got)
		}
	}
}
