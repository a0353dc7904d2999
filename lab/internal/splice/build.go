package splice

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Goroot returns the installation that builds the module in a folder.
func Goroot(ctx context.Context, dir string) (string, error) {
	return goEnv(ctx, dir, "GOROOT")
}

// goEnv returns a variable of the go command.
func goEnv(ctx context.Context, dir, name string) (string, error) {
	command := exec.CommandContext(ctx, "go", "env", name)
	command.Dir = dir
	output, err := run(ctx, command)
	return strings.TrimSpace(output), err
}

// outsideCache returns an installation outside of the module cache. If goroot is in
// the cache, as an installation that the go command has downloaded, the result is a
// link in the folder out: the go command refuses an overlay for files in the cache.
func outsideCache(ctx context.Context, goroot, out string) (string, error) {
	cache, err := goEnv(ctx, out, "GOMODCACHE")
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(goroot, cache+string(filepath.Separator)) {
		return goroot, nil
	}
	link := filepath.Join(out, "goroot")
	return link, os.Symlink(goroot, link)
}

// Programs are two builds of one command.
type Programs struct {
	Plain   string // with the installed runtime
	Changed string // with the changed runtime
}

// Build builds the main package in the folder dir twice, with the runtime of an
// installation and with a changed copy of it. The files go to the folder out, which
// must exist; the programs need nothing else in it. Packages that were built before
// are in Go's cache.
func Build(ctx context.Context, dir, goroot, out string) (Programs, error) {
	goroot, err := outsideCache(ctx, goroot, out)
	if err != nil {
		return Programs{}, err
	}
	source, text, err := rewrite(goroot)
	if err != nil {
		return Programs{}, err
	}
	overlay, err := writeOverlay(out, source, text)
	if err != nil {
		return Programs{}, err
	}
	ending := ""
	if runtime.GOOS == "windows" {
		ending = ".exe"
	}
	programs := Programs{
		Plain:   filepath.Join(out, "cheap-plain"+ending),
		Changed: filepath.Join(out, "cheap-changed"+ending),
	}
	if err := build(ctx, dir, goroot, "-o", programs.Plain); err != nil {
		return Programs{}, err
	}
	return programs, build(ctx, dir, goroot, "-o", programs.Changed, "-overlay", overlay)
}

// writeOverlay writes a changed source file, and the overlay that has the go command
// use it. It returns the name of the overlay.
func writeOverlay(out, source string, text []byte) (string, error) {
	copied := filepath.Join(out, filepath.Base(source))
	if err := os.WriteFile(copied, text, 0o644); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {source: copied}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(out, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o644)
}

// build runs go build with an installation, and with no other toolchain.
func build(ctx context.Context, dir, goroot string, args ...string) error {
	command := exec.CommandContext(ctx, filepath.Join(goroot, "bin", "go"), append([]string{"build"}, args...)...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOROOT="+goroot, "GOTOOLCHAIN=local")
	_, err := run(ctx, command)
	return err
}

// run returns the output of a command. An error has the command's stderr.
func run(ctx context.Context, command *exec.Cmd) (string, error) {
	var stderr strings.Builder
	command.Stderr = &stderr
	output, err := command.Output()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(command.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return string(output), nil
}
