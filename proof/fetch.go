package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// memoryLimit is how much address space a program of a project may have, in bytes, or how much of it
// for data: some of their tests would take all memory of the machine.
const memoryLimit int64 = 8 << 30

// A checkout is a project in a temporary folder, which is removed behind it.
type checkout struct {
	*project
	root     string   // the folder
	folder   string   // of our files
	dirs     []string // of the modules
	progress io.Writer
}

func (c *checkout) remove() { os.RemoveAll(c.root) }

// fetch copies the modules of a project from the module cache. The go command refuses to replace
// files there.
func fetch(ctx context.Context, p *project, progress io.Writer) (c *checkout, err error) {
	folder, err := filepath.Abs(p.name)
	if err != nil {
		return nil, err
	}
	root, err := os.MkdirTemp("", "proof-")
	if err != nil {
		return nil, err
	}
	c = &checkout{project: p, root: root, folder: folder, progress: progress}
	defer func() {
		if err != nil {
			c.remove()
		}
	}()
	for i, m := range p.modules {
		fmt.Fprintf(progress, "%s %s\n", m.path, m.version)
		dir := filepath.Join(root, "module"+strconv.Itoa(i))
		if err := c.copy(ctx, m, dir); err != nil {
			return nil, err
		}
		c.dirs = append(c.dirs, dir)
	}
	for _, dir := range c.dirs {
		if err := c.require(ctx, dir); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// copy downloads a module and copies it.
func (c *checkout) copy(ctx context.Context, m module, dir string) error {
	out, err := c.output(c.goCommand(ctx, c.root, nil, "mod", "download", "-json", m.path+"@"+m.version))
	if err != nil {
		return err
	}
	var got struct{ Dir, Sum string }
	if err := json.Unmarshal(out, &got); err != nil {
		return err
	}
	if got.Sum != m.sum {
		return fmt.Errorf("%s %s is %s, and was measured as %s", m.path, m.version, got.Sum, m.sum)
	}
	return os.CopyFS(dir, os.DirFS(got.Dir))
}

// require has a module take package cheap from this checkout, and the other modules of the project
// from their copies. All ways have the same go.mod.
func (c *checkout) require(ctx context.Context, dir string) error {
	cheap, err := filepath.Abs("..")
	if err != nil {
		return err
	}
	args := []string{"mod", "edit", "-go=1.26.0", "-toolchain=none", "-require=github.com/cheapgo/cheap@v0.0.0", "-replace=github.com/cheapgo/cheap=" + cheap}
	for i, m := range c.modules {
		if c.dirs[i] != dir {
			args = append(args, "-replace="+m.path+"="+c.dirs[i])
		}
	}
	if _, err := c.output(c.goCommand(ctx, dir, nil, args...)); err != nil {
		return err
	}
	sums, err := os.OpenFile(filepath.Join(dir, "go.sum"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	ours, err := os.ReadFile(filepath.Join(cheap, "go.sum"))
	if err == nil {
		_, err = sums.Write(ours)
	}
	if err2 := sums.Close(); err == nil {
		err = err2
	}
	return err
}

// overlay writes what go build -overlay wants to know of a way: the load, and the files of its trees.
// A diff in a tree changes files of the module. With forget the tests have no Close, and the files of
// _forget are there as well.
func (c *checkout) overlay(ctx context.Context, w *way, forgetting bool) (name string, err error) {
	replace := map[string]string{}
	add := func(to, dir string) error {
		return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			switch {
			case path == dir && errors.Is(err, fs.ErrNotExist):
				return nil // there is nothing to add
			case err != nil || d.IsDir():
				return err
			}
			rel, err := filepath.Rel(dir, path)
			if strings.HasSuffix(rel, ".diff") {
				return err // patch applies it
			}
			replace[filepath.Join(to, rel)] = path
			return err
		})
	}
	load := filepath.Join(c.dirs[0], "proofload")
	if err := errors.Join(add(load, filepath.Join(c.folder, "../_load")), add(load, filepath.Join(c.folder, "_load"))); err != nil {
		return "", err
	}
	for i, m := range c.modules {
		files := layer{}
		for _, tree := range []string{w.under, w.tree} {
			if tree == "" {
				continue
			}
			from := filepath.Join(c.folder, tree, m.folder)
			err = errors.Join(err, add(c.dirs[i], from))
			diffs, _ := filepath.Glob(filepath.Join(from, "*.diff"))
			for _, diff := range diffs {
				err = errors.Join(err, c.patch(ctx, c.dirs[i], diff, files))
			}
		}
		if len(w.keep) > 0 {
			err = errors.Join(err, c.rewriteAll(c.dirs[i], "*.go", files, func(source []byte) ([]byte, error) { return keepAlive(source, w.keep) }))
		}
		if forgetting {
			err = errors.Join(err, c.rewriteAll(c.dirs[i], "*_test.go", files, forget), add(c.dirs[i], filepath.Join(c.folder, "_forget")))
		}
		for name, path := range files {
			replace[filepath.Join(c.dirs[i], name)] = path
		}
	}
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name = filepath.Join(c.root, fmt.Sprintf("overlay%s-%v.json", w.tree, forgetting))
	return name, os.WriteFile(name, text, 0o666)
}

// build returns the arguments of the go command for a way.
func (c *checkout) build(ctx context.Context, w *way, forgetting bool) ([]string, error) {
	overlay, err := c.overlay(ctx, w, forgetting)
	return append([]string{"-mod=mod", "-overlay=" + overlay}, w.args...), err
}

// goCommand returns a call of the go command for a module.
func (c *checkout) goCommand(ctx context.Context, dir string, env []string, args ...string) *exec.Cmd {
	return c.command(ctx, dir, append([]string{"GOWORK=off", "GOTOOLCHAIN=local", "GOFLAGS="}, env...), append([]string{"go"}, args...)...)
}

// command returns a command with more in its environment.
func (c *checkout) command(ctx context.Context, dir string, env []string, words ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), "TMPDIR="+c.root) // some tests leave files behind
	for _, v := range env {
		cmd.Env = append(cmd.Env, strings.ReplaceAll(v, "$FOLDER", c.folder))
	}
	return cmd
}

// limited returns the words of a command that runs another within memoryLimit.
func (p *project) limited() []string {
	limit := "--as="
	if p.mapsFiles {
		limit = "--data="
	}
	return []string{"prlimit", limit + strconv.FormatInt(memoryLimit, 10)}
}

// output runs a command, and returns what it prints.
func (c *checkout) output(cmd *exec.Cmd) ([]byte, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", strings.Join(cmd.Args, " "), err, out, &stderr)
	}
	return out, nil
}
