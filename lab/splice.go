package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/cheapgo/cheap/internal/result"
	"github.com/cheapgo/cheap/lab/internal/measure"
	"github.com/cheapgo/cheap/lab/internal/splice"
	"github.com/cheapgo/cheap/lab/internal/tables"
)

// spliceCommandName is a command that only this program calls: the process that
// measures a row of `cheap bench -splice`. It runs in a second build of this
// program.
const spliceCommandName = "bench-splice-row"

// command is the package of this program.
const command = "github.com/cheapgo/cheap/lab"

// A spliced is what -splice adds: a table whose rows are measured by programs that
// have to be built first.
type spliced struct {
	table    measure.Table
	programs splice.Programs
	folder   string // of the programs, "" before they are built
}

func newSpliced() *spliced {
	s := new(spliced)
	s.table = splice.Table(releaseRows(), &s.programs, func(args ...string) []string {
		return append([]string{spliceCommandName}, args...)
	})
	return s
}

// addTo inserts the table behind the table release.
func (s *spliced) addTo(all []measure.Table) []measure.Table {
	at := slices.IndexFunc(all, func(t measure.Table) bool { return t.Name == "release" })
	return slices.Insert(all, at+1, s.table)
}

// takenFrom removes the table.
func (s *spliced) takenFrom(all []measure.Table) []measure.Table {
	return slices.DeleteFunc(all, func(t measure.Table) bool { return t.Name == s.table.Name })
}

// keptBy reports whether a pattern leaves rows of the table.
func (s *spliced) keptBy(p pattern) bool {
	return slices.ContainsFunc(s.table.Rows, func(r measure.Row) bool { return p.keeps(s.table.Name, r.Name) })
}

// releaseRows returns the rows of the release table.
func releaseRows() []measure.Row {
	for _, t := range tables.All() {
		if t.Name == "release" {
			return t.Rows
		}
	}
	return nil
}

// build builds the programs. The error is a splice.Unmatched if the runtime cannot
// be changed, and a usageError if something else is missing.
func (s *spliced) build(ctx context.Context) error {
	dir, err := sourceFolder(ctx)
	if err != nil {
		return err
	}
	goroot, err := splice.Goroot(ctx, dir)
	if err != nil {
		return usagef("-splice: %s; a working go command is needed", oneLine(err))
	}
	if err := splice.Supported(goroot); err != nil {
		return err
	}
	if s.folder, err = os.MkdirTemp("", "cheap-splice-*"); err != nil {
		return err
	}
	s.programs, err = splice.Build(ctx, dir, goroot, s.folder)
	return err
}

// remove removes the programs.
func (s *spliced) remove() {
	if s.folder != "" {
		os.RemoveAll(s.folder)
	}
}

// sourceFolder returns the folder of this program's source: the one in which the
// program was built, or else the one that the module of the working directory
// leads to.
func sourceFolder(ctx context.Context) (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		if _, err := os.Stat(file); err == nil {
			return filepath.Dir(file), nil
		}
	}
	output, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", command).Output()
	if err != nil {
		return "", usagef("-splice: the command has to build itself again, and its source is not where it was built; run it in a checkout of github.com/cheapgo/cheap, with a go command")
	}
	return strings.TrimSpace(string(output)), nil
}

// buildSpliced builds what -splice needs, unless -run leaves no row for it. If the
// runtime cannot be changed, it removes the table and notes why.
func (s *settings) buildSpliced(ctx context.Context, out messages) error {
	if !s.spliced.keptBy(s.run) {
		return nil
	}
	out.send(result.Message{Progress: "building this command with a changed runtime; the first time, this takes a minute"})
	err := s.spliced.build(ctx)
	var unmatched *splice.Unmatched
	if !errors.As(err, &unmatched) {
		return err
	}
	note := fmt.Sprintf("the table splice has no rows: %v", unmatched)
	out.send(result.Message{Warning: note})
	s.notes = append(s.notes, note)
	s.tables = s.spliced.takenFrom(s.tables)
	return nil
}
