//go:build cgo && (amd64 || arm64)

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestRecordLibraryOfGo records a program in C that loads a library in Go. Its runtime reads what
// the kernel has written behind the environment. Once the command has found that, stacks have the functions of Go.
func TestRecordLibraryOfGo(t *testing.T) {
	t.Parallel()
	const text = `
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv) {
	for (char **e = environ; *e; e++)
		if (!**e || strncmp(*e, "LD_PRELOAD=", 11) == 0 || strncmp(*e, "CHEAP_CMEM_", 11) == 0)
			printf("environ has [%s]\n", *e);
	fflush(stdout);
	void *library = dlopen(argv[1], RTLD_NOW);
	void (*hello)(void) = library ? (void (*)(void))dlsym(library, "hello") : 0;
	void (*grow)(void) = library ? (void (*)(void))dlsym(library, "grow") : 0;
	if (!hello || !grow)
		return 1;
	hello();
	for (int i = 0; i < 60; i++) {
		grow();
		usleep(50000);
	}
	return 7;
}
`
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module library\n",
		"main.go": `package main

// #include <stdlib.h>
// static void *grab(size_t n) { void *volatile p = malloc(n); return p; }
import "C"

import "syscall" // and no more: all that is imported is compiled for this library only

//export hello
func hello() {
	kept, _ := syscall.Getenv("KEPT")
	preload, _ := syscall.Getenv("LD_PRELOAD")
	syscall.Write(1, []byte("[" + kept + "] [" + preload + "]\n"))
}

//export grow
func grow() { C.grab(1000000) }

func main() {}
`,
	} {
		testcall.Must(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666))
	}
	library, program := filepath.Join(folder, "library.so"), filepath.Join(folder, "program")
	build := exec.Command("go", "build", "-buildmode=c-shared", "-o", library, ".")
	build.Env = append(os.Environ(), "GOWORK=off")
	cc := exec.Command("cc", "-x", "c", "-o", program, "-", "-ldl")
	cc.Stdin = strings.NewReader(text)
	for _, command := range []*exec.Cmd{build, cc} {
		command.Dir = folder
		if text, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", command, err, text)
		}
	}
	r := recordEnv(t, []string{"KEPT=kept"}, program, library)
	if r.code != 7 || r.stdout != "[kept] []\n" || !strings.Contains(r.stderr, "main.grow main.go:1") {
		t.Errorf("code %d, the program prints %q, and stderr is %s", r.code, r.stdout, r.stderr)
	}
}

// TestRecordNoReader has a report that goes to a pipe without a reader. What record has made for
// itself is removed.
func TestRecordNoReader(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	command, out := recordCommandLine(t, []string{"TMPDIR=" + folder}, theRecorded(t), "threads")
	from, to, err := os.Pipe()
	testcall.Must(t, err)
	from.Close()
	command.Stderr = to
	command.Run()
	to.Close()
	if code := command.ProcessState.ExitCode(); code != 0 {
		t.Errorf("%v, want the code of the program, 0", command.ProcessState)
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
	if _, err := os.Stat(out); err != nil {
		t.Error(err)
	}
}

// TestRecordPath records a program that is found by PATH. The report has a command that finds it.
func TestRecordPath(t *testing.T) {
	t.Parallel()
	program := theRecorded(t)
	r := recordEnv(t, []string{"PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH")}, filepath.Base(program), "leak")
	if want := "go tool pprof " + program + " " + r.out + "\n"; r.code != 3 || !strings.Contains(r.stderr, want) {
		t.Errorf("code %d, no %q in\n%s", r.code, want, r.stderr)
	}
}
