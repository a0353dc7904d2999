//go:build amd64 || arm64

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cheapgo/cheap/cmd/cheap/internal/executable"
	"github.com/cheapgo/cheap/cmd/cheap/internal/shared"
)

// The children are the programs that a recorded one has started, and those that they have. Each makes a file in the folder when
// it begins, and waits until it was seen. Methods of a nil pointer do nothing.
type children struct {
	settings *recordSettings
	folder   *shared.Folder
	seen     map[string]bool // files
	running  []*childRun
	small    int          // how many have ended without a sample
	text     bytes.Buffer // the reports of those that have ended
	failed   error

	mu       sync.Mutex
	programs map[string]bool
}

// A childRun is a recording of a child.
type childRun struct {
	recording
	stop func() // to watch it
}

// childrenEvery is how often the folder is looked at.
const childrenEvery = 2 * time.Millisecond

func newChildren(s *recordSettings, where string) (*children, error) {
	folder, err := shared.FolderIn(where)
	return &children{settings: s, folder: folder, seen: map[string]bool{}, programs: map[string]bool{}}, err
}

// has reports whether a program was recorded.
func (c *children) has(program string) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.programs[program]
}

// watch looks for programs until stop is called. Those that run then are recorded no longer.
func (c *children) watch() (stop func()) {
	if c == nil {
		return func() {}
	}
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for ticks := time.Tick(childrenEvery); ; {
			select {
			case <-over:
				c.look(true)
				return
			case <-ticks:
				c.look(false)
			}
		}
	}()
	return func() { close(over); <-ended }
}

// look begins to record the programs that are new, and ends those that are gone, or all.
func (c *children) look(all bool) {
	files, _ := os.ReadDir(c.folder.Path)
	for _, f := range files {
		path := filepath.Join(c.folder.Path, f.Name())
		if c.seen[path] {
			continue
		}
		if file, pid, err := shared.OpenChild(path); err == nil {
			c.seen[path] = true
			c.begin(file, pid)
		}
	}
	var running []*childRun
	for _, run := range c.running {
		if !all && !run.file.Gone() {
			running = append(running, run)
			continue
		}
		run.stop()
		run.took = time.Since(run.since)
		counts, err := run.file.Counts()
		if err == nil && counts.Samples == 0 {
			c.small++
		} else if err = run.takeName(); err == nil {
			err = run.writeToFolder()
		}
		c.failed = errors.Join(c.failed, err, run.file.Close(), os.Remove(run.file.Path))
	}
	c.running = running
}

// begin begins to record a program.
func (c *children) begin(file *shared.File, pid int) {
	settings := *c.settings
	settings.path, _ = os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)) // "" if it has ended
	program, err := executable.Open(settings.path)
	if err != nil {
		program = &executable.Program{Path: settings.path, At: settings.path}
	}
	settings.program, settings.args = program, []string{filepath.Base(settings.path)}
	file.SetGo(program, 0)
	run := &childRun{recording: recording{recordSettings: &settings, file: file, stderr: &c.text, children: c, since: time.Now()}}
	_, run.stop = run.watchParts(pid)
	file.Ready()
	c.running = append(c.running, run)
	c.mu.Lock()
	c.programs[settings.path] = true
	c.mu.Unlock()
}

// write writes the reports.
func (c *children) write(w io.Writer) error {
	if c == nil {
		return nil
	}
	if c.small > 0 {
		fmt.Fprintf(&c.text, "cheap record: %s started that allocated too little for a sample\n", were(c.small))
	}
	_, err := c.text.WriteTo(w)
	return errors.Join(c.failed, err)
}
