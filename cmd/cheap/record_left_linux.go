//go:build amd64 || arm64

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cheapgo/cheap/cmd/cheap/internal/executable"
	"github.com/cheapgo/cheap/cmd/cheap/internal/shared"
	"github.com/cheapgo/cheap/internal/page/figure"
)

// note has the file say whose it is, so that the next run can write the profile if this one is killed.
func (s *recordSettings) note(file *shared.File) error {
	out, err := filepath.Abs(s.out)
	if err != nil {
		return err
	}
	info, err := os.Stat(s.program.Path)
	if err != nil {
		return err
	}
	return file.WriteNote(shared.Note{Program: s.program.Path, Made: info.ModTime().UnixNano(), Out: out})
}

// writeLeft writes the profile of a run that was killed, beside where that would have written its own, and says so.
func writeLeft(path string, stderr io.Writer) {
	file, note, err := shared.OpenLeft(path)
	if err != nil {
		return // of an older version, or of a run that was killed before its program began
	}
	defer file.Close()
	if !file.Started() || file.Off() != "" {
		return
	}
	name, err := recoverLeft(file, note)
	if err != nil {
		fmt.Fprintf(stderr, "cheap record: a run of %s was killed, and its profile is lost: %v\n", quoted(note.Program), err)
		return
	}
	fmt.Fprintf(stderr, "cheap record: a run of %s was killed; wrote its profile to %s\n", quoted(note.Program), quoted(name))
}

// recoverLeft writes the profile, and returns its name. It replaces no file.
func recoverLeft(file *shared.File, note shared.Note) (name string, err error) {
	info, err := os.Stat(note.Program)
	if err != nil {
		return "", err
	}
	if info.ModTime().UnixNano() != note.Made {
		return "", errors.New("the program was built again meanwhile")
	}
	program, err := executable.Open(note.Program)
	if err != nil {
		return "", err
	}
	_, _, _, profile, err := profileOf(file, program)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	if err := profile.Write(&text); err != nil {
		return "", err
	}
	base := strings.TrimSuffix(strings.TrimSuffix(note.Out, profileSuffix), pageSuffix) + "-recovered"
	for n := 1; ; n++ {
		if name = base; n > 1 {
			name += fmt.Sprint("-", n)
		}
		name += profileSuffix
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(text.Bytes())
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(name)
		}
		return figure.Printable(name), err
	}
}
