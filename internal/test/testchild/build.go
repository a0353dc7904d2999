package testchild

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Build builds a program: args are the flags of go build, and the package at the end. env are
// variables for that, such as "CC=musl-gcc".
//
// go build links anew each time. go run keeps what it has linked among the results of
// builds, and has cp copy it from there.
func Build(file string, env []string, args ...string) error {
	cmd := exec.Command("go", "build", "-o", file)
	if _, err := exec.LookPath("cp"); err == nil {
		ldflags := "-ldflags=-s=false -w=false" // go run leaves out the names of C functions
		cmd = exec.Command("go", "run", "-exec=cp")
		for i, arg := range args {
			if flags, ok := strings.CutPrefix(arg, "-ldflags="); ok {
				ldflags += " " + flags
				args = append(args[:i:i], args[i+1:]...)
				break
			}
		}
		cmd.Args = append(cmd.Args, ldflags)
		args = append(args[:len(args):len(args)], file)
	}
	cmd.Args = append(cmd.Args, args...)
	cmd.Env = append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}
