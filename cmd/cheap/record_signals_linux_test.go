//go:build cgo && (amd64 || arm64)

package main

import (
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
)

// TestRecordLastLook stops a program that has just taken memory, one that has become another by exec, and one that has
// started another.
func TestRecordLastLook(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "program")
	compileC(t, program, `
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv) {
	size_t n = strcmp(argv[1], "again") == 0 ? 300 << 20 : 64 << 20;
	char *volatile p = memset(malloc(n), 1, n);
	if (strcmp(argv[1], "exec") == 0)
		execl(argv[0], argv[0], "again", NULL);
	if (strcmp(argv[1], "start") == 0) {
		int ends[2];
		char *args[] = {"cat", 0};
		pid_t pid;
		posix_spawn_file_actions_t files;
		posix_spawn_file_actions_init(&files);
		if (pipe2(ends, O_CLOEXEC) != 0)
			return 1;
		posix_spawn_file_actions_adddup2(&files, ends[0], 0); // it ends with this process
		if (posix_spawnp(&pid, "cat", &files, 0, args, environ) != 0) // which returns after exec
			return 1;
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
`)
	const not = `\n  (?:verdict|not all) +the program ` // one of them
	for _, c := range []struct{ mode, want, never string }{
		{"grow", `when it was (6[4-9]|7\d)\.?\d* MiB:\n                64\.0 MiB  C, in use\n`, not},
		{"exec", not + `became \S+/program, by exec; what came then is not recorded\n`, ` [23]\d\d MiB|by exec(.*\n)*.*by exec`},
		{"start", not + `has started \S+; what a program starts is not recorded[;\n]`, `by exec`},
	} {
		command, _ := recordCommandLine(t, nil, "-rate", "1", program, c.mode)
		var stdout, stderr lineWriter
		command.Stdout, command.Stderr = &stdout, &stderr
		command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		stdout.waitFor(t, "ready\n")
		command.Process.Signal(syscall.SIGTERM)
		command.Wait()
		said := stderr.String()
		if !regexp.MustCompile(c.want).MatchString(said) || regexp.MustCompile(c.never).MatchString(said) {
			t.Errorf("%s: want %q, and not %q:\n%s", c.mode, c.want, c.never, said)
		}
	}
}
