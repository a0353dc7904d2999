package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

// labModule is the module that measures. It needs what cheap is compared with, which a user of the
// other commands does not.
const labModule = "github.com/cheapgo/cheap/lab"

// A lab is a build of that module.
type lab struct {
	program string
	folder  string // to be removed
}

// builtLab is the lab of tests, "" for none.
var builtLab string

// buildLab builds the module: from the checkout that this command was built in or that the working
// directory is in, or else at the version of this command.
func buildLab(ctx context.Context) (lab, error) {
	if builtLab != "" {
		return lab{program: builtLab}, nil
	}
	if _, err := exec.LookPath("go"); err != nil {
		return lab{}, usagef("what measures is the module lab, which is built with Go; no go command is in PATH")
	}
	folder, err := os.MkdirTemp("", "cheap-lab-*")
	if err != nil {
		return lab{}, err
	}
	l := lab{program: filepath.Join(folder, "lab"), folder: folder}
	if runtime.GOOS == "windows" {
		l.program += ".exe"
	}
	if err := l.build(ctx); err != nil {
		l.remove()
		return lab{}, err
	}
	return l, nil
}

func (l lab) build(ctx context.Context) error {
	if source := labSource(); source != "" {
		return goCommand(ctx, source, "build", "-o", l.program, ".")
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return usagef("what measures is the module lab, which is not in this folder; run the command in a checkout of github.com/cheapgo/cheap")
	}
	// go install builds at a version, and takes no -o.
	err := goCommand(ctx, l.folder, "install", labModule+"@"+info.Main.Version)
	return err
}

// goCommand runs the go command in a folder. A program that it installs comes into the folder.
func goCommand(ctx context.Context, folder string, args ...string) error {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = folder
	command.Env = append(command.Environ(), "GOBIN="+folder, "GOWORK=off", "GOFLAGS=")
	text, err := command.CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return usagef("the module lab cannot be built: %v: %s", err, oneLine(errors.New(string(text))))
	}
	return nil
}

// labSource returns the folder of the module in a checkout, "" if there is none.
func labSource() string {
	var from []string
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		from = append(from, filepath.Dir(file))
	}
	if here, err := os.Getwd(); err == nil {
		from = append(from, here)
	}
	for _, folder := range from {
		for {
			text, err := os.ReadFile(filepath.Join(folder, "lab", "go.mod"))
			if err == nil && strings.HasPrefix(string(text), "module "+labModule+"\n") {
				return filepath.Join(folder, "lab")
			}
			above := filepath.Dir(folder)
			if above == folder {
				break
			}
			folder = above
		}
	}
	return ""
}

// command runs the laboratory. It is interrupted by the end of its stdin, and by nothing else.
func (l lab) command(args ...string) *exec.Cmd { return exec.Command(l.program, args...) }

func (l lab) remove() {
	if l.folder != "" {
		os.RemoveAll(l.folder)
	}
}
