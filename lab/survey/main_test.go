//go:build linux

package main

import (
	"archive/zip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// leaky is a module with a package that leaks, one that cannot be read, and one without cgo.
var leaky = map[string]string{
	"go.mod":           "module example.com/leaky\n\ngo 1.21\n",
	"plain/plain.go":   "package plain\n",
	"broken/broken.go": "package broken\n\nimport \"C\"\n\nfunc f( {\n",
	"leaky.go": `package leaky

// #include <stdlib.h>
// int puts(char *);
import "C"

func Print(s string) { C.puts((*C.char)(C.CString(s))) }

func Same(s string) *C.char { return C.CString(s) }

type T struct{ p *C.char }
`,
	"leaky_test.go": "package leaky\n\nfunc again(s string) { Print(s) }\n",
}

var plain = map[string]string{"go.mod": "module example.com/plain\n", "plain.go": "package plain\n"}

// serve writes a module to a folder from which the go command can take it.
func serve(t *testing.T, proxy, path string, files map[string]string) {
	t.Helper()
	const version = "v1.0.0"
	dir := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	testcall.Must(t, os.MkdirAll(dir, 0o777))
	write := func(ext, text string) {
		testcall.Must(t, os.WriteFile(filepath.Join(dir, version+ext), []byte(text), 0o666))
	}
	write(".mod", files["go.mod"])
	write(".info", `{"Version":"`+version+`"}`)
	var b strings.Builder
	z := zip.NewWriter(&b)
	for name, text := range files {
		f, err := z.Create(path + "@" + version + "/" + name)
		if err == nil {
			_, err = f.Write([]byte(text))
		}
		testcall.Must(t, err)
	}
	testcall.Must(t, z.Close())
	write(".zip", b.String())
}

// TestSurvey surveys modules that a folder serves.
func TestSurvey(t *testing.T) {
	dir := t.TempDir()
	cheapvet := filepath.Join(dir, "cheapvet")
	if out, err := exec.Command("go", "build", "-C", "../../vet", "-o", cheapvet, "./cmd/cheapvet").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	proxy := filepath.Join(dir, "proxy")
	serve(t, proxy, "example.com/leaky", leaky)
	serve(t, proxy, "example.com/plain", plain)
	t.Setenv("GOPROXY", "file://"+filepath.ToSlash(proxy))
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOMODCACHE", filepath.Join(dir, "cache"))
	t.Cleanup(func() { exec.Command("go", "clean", "-modcache").Run() }) // its files cannot be removed otherwise
	list := filepath.Join(dir, "modules.txt")
	testcall.Must(t, os.WriteFile(list, []byte("# a source\nexample.com/leaky@v1.0.0\nexample.com/plain@v1.0.0\nexample.com/gone@v1.0.0 # moved\n"), 0o666))
	var out strings.Builder
	testcall.Must(t, run([]string{"-cheapvet=" + cheapvet, "-out=" + dir, list}, &out))
	if err := run([]string{"-cheapvet=" + cheapvet, "-compare=" + dir, list}, io.Discard); err != nil {
		t.Errorf("the second run finds something else: %v", err)
	}
	read := func(name string) []string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		testcall.Must(t, err)
		return strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
	}
	rows := read("modules.tsv")
	for i, want := range []string{
		"example.com/leaky@v1.0.0\t\t1\t1\t11\t2\t1\t1\t1\t0\t0\t0\t0",
		"example.com/plain@v1.0.0\tno file with cgo for this system\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0",
		"example.com/gone@v1.0.0\tnot served: ",
	} {
		if !strings.HasPrefix(rows[i], want) || !strings.Contains(out.String(), want) {
			t.Errorf("row %d is %q, want %q", i, rows[i], want)
		}
	}
	if got, want := read("findings.tsv"), "example.com/leaky@v1.0.0\tcfree\tdropped\tleaky.go:7"; len(got) != 1 || got[0] != want {
		t.Errorf("the findings are %q, want only %q", got, want)
	}
}

// TestCompare compares results, and keeps those of a module that is not served.
func TestCompare(t *testing.T) {
	dir := t.TempDir()
	list := filepath.Join(dir, "modules.txt")
	const name = "example.com/gone@v1.0.0"
	kept := results{name: {name + "\t\t1\n", name + "\tcfree\tnever\ta.go:1\n"}}
	testcall.Must(t, errors.Join(os.WriteFile(list, []byte(name+"\n"), 0o666), kept.write(dir, []string{name})))
	t.Setenv("GOPROXY", "off")
	for _, flag := range []string{"-out=", "-compare="} {
		testcall.Want(t, run([]string{"-cheapvet=sh", flag + dir, list}, io.Discard))
	}
	if got, err := readResults(dir); err != nil || got[name] != kept[name] {
		t.Errorf("it has %q, %v, want %q", got[name], err, kept[name])
	}
	changed := results{name: {kept[name].row, name + "\tcfree\tnever\ta.go:2\n"}}
	const want = "-" + name + "\tcfree\tnever\ta.go:1\n+" + name + "\tcfree\tnever\ta.go:2\n"
	if err := kept.compare(changed, []string{name}); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("the difference is %v, want %q", err, want)
	}
}

// TestSlow gives a module no time.
func TestSlow(t *testing.T) {
	list := filepath.Join(t.TempDir(), "modules.txt")
	testcall.Must(t, os.WriteFile(list, []byte("example.com/leaky@v1.0.0\n"), 0o666))
	t.Setenv("GOPROXY", "off")
	var out strings.Builder
	testcall.Must(t, run([]string{"-cheapvet=sh", "-timeout=1ns", list}, &out))
	if !strings.Contains(out.String(), "took longer than 1ns") {
		t.Errorf("it says %q", out.String())
	}
	if err := run([]string{"-cheapvet=" + filepath.Join(t.TempDir(), "none"), list}, io.Discard); err == nil {
		t.Error("no error without cheapvet")
	}
}
