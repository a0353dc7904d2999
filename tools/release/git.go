package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A git is the folder of a repository.
type git string

// run runs a git command with a stdin, and with additions to the environment. It returns stdout.
func (g git) run(stdin string, env []string, args ...string) ([]byte, error) {
	c := exec.Command("git", append([]string{"-C", string(g)}, args...)...)
	c.Stdin = strings.NewReader(stdin)
	c.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		err = fmt.Errorf("git %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, err
}

// line is run without a stdin, for a command that prints one line.
func (g git) line(env []string, args ...string) (string, error) {
	out, err := g.run("", env, args...)
	return strings.TrimSpace(string(out)), err
}

// A tree has the files of a commit, without symbolic links, of which no module has any.
type tree struct {
	commit string
	files  map[string][]byte // by their path, with slashes
}

// tree reads all files of a commit.
func (g git) tree(commit string) (*tree, error) {
	hash, err := g.line(nil, "rev-parse", "--verify", commit+"^{commit}")
	if err != nil {
		return nil, err
	}
	listed, err := g.run("", nil, "ls-tree", "-r", "-z", "--full-tree", hash)
	if err != nil {
		return nil, err
	}
	var names []string
	var wanted strings.Builder
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(listed), "\x00"), "\x00") {
		about, name, _ := strings.Cut(entry, "\t")
		mode, about, _ := strings.Cut(about, " ")
		if mode != "100644" && mode != "100755" {
			return nil, fmt.Errorf("%s has mode %s, and is no regular file", name, mode)
		}
		names = append(names, name)
		wanted.WriteString(strings.TrimPrefix(about, "blob ") + "\n")
	}
	texts, err := g.run(wanted.String(), nil, "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	t := &tree{commit: hash, files: map[string][]byte{}}
	in := bufio.NewReader(bytes.NewReader(texts))
	for _, name := range names {
		// The format is: hash blob size, a line break, the text, a line break.
		head, err := in.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("%s: git cat-file has no more: %w", name, err)
		}
		size, err := strconv.Atoi(strings.TrimSpace(head[strings.LastIndexByte(strings.TrimSpace(head), ' ')+1:]))
		if err != nil {
			return nil, fmt.Errorf("%s: git cat-file says %q", name, head)
		}
		text := make([]byte, size+1)
		if _, err := io.ReadFull(in, text); err != nil {
			return nil, fmt.Errorf("%s: git cat-file has no more: %w", name, err)
		}
		t.files[name] = text[:size]
	}
	return t, nil
}

func (t *tree) text(name string) []byte { return t.files[name] }

// with returns a tree that has other texts for some files.
func (t *tree) with(texts map[string][]byte) *tree {
	files := maps.Clone(t.files)
	maps.Copy(files, texts)
	return &tree{t.commit, files}
}

// commit makes a commit whose files are those of another commit of which some have other texts. No
// file is new, so modes stay.
func (g git) commit(parent string, texts change, message string) (string, error) {
	dir, err := os.MkdirTemp("", "release-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index")}
	if _, err := g.run("", index, "read-tree", parent); err != nil {
		return "", err
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		hash, err := g.run(string(texts[name]), nil, "hash-object", "-w", "--stdin")
		if err != nil {
			return "", err
		}
		info := "100644," + strings.TrimSpace(string(hash)) + "," + name
		if _, err := g.run("", index, "update-index", "--add", "--cacheinfo", info); err != nil {
			return "", err
		}
	}
	hash, err := g.line(index, "write-tree")
	if err != nil {
		return "", err
	}
	return g.line(nil, "commit-tree", hash, "-p", parent, "-m", message)
}
