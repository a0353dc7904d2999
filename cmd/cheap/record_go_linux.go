//go:build amd64 || arm64

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/cheapgo/cheap/cmd/cheap/internal/shared"
	"github.com/cheapgo/cheap/internal/page/figure"
)

// How several programs are recorded: go test -exec starts this command for each, with a folder for -o.

const reportSuffix, profileSuffix = ".txt", ".pb.gz"

// reportsVariable has the name of a file, to which each of these commands adds that of its report, and a zero: what else comes
// into the folder is of others. The programs do not have it in their environment.
const reportsVariable = "CHEAP_RECORD_REPORTS"

// recordGo runs go test or go run, and has it start each program that it has built by this command. The go
// command does not print what tests print that pass, so the reports are files.
func (s *recordSettings) recordGo(signals *signals, library string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	each, err := goQuoted(self, "record", fmt.Sprint("-rate=", s.rate), "-library="+library, "-o="+s.folder+"/", fmt.Sprint("-children=", s.children), "--")
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(s.folder, 0o777); err != nil {
		return 0, usagef("-o: %v", err)
	}
	reports, err := os.CreateTemp(s.folder, ".reports-")
	if err != nil {
		return 0, usagef("-o: %v", err)
	}
	defer func() { reports.Close(); os.Remove(reports.Name()) }()
	at := 2
	if len(s.args) > 2 { // -C must be the first
		switch name, _, whole := strings.Cut(strings.TrimLeft(s.args[2], "-"), "="); {
		case name == "C" && whole:
			at = 3
		case name == "C":
			at = min(4, len(s.args))
		}
	}
	command := exec.Command(s.path, slices.Concat(s.args[1:at], []string{"-exec=" + each}, s.args[at:])...)
	command.Args[0] = s.args[0]
	command.Stdin, command.Stdout, command.Stderr = stdin, stdout, stderr
	command.Env = append(os.Environ(), reportsVariable+"="+reports.Name())
	if err := command.Start(); err != nil {
		return 0, usagef("%v", err)
	}
	signals.passTo(command.Process, func() {})
	if err := command.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		return 0, err
	}
	list, err := io.ReadAll(reports)
	if err != nil {
		return 0, err
	}
	names := strings.Split(string(list), "\x00")
	names = names[:len(names)-1]
	slices.Sort(names)
	unrecorded := 0
	for _, name := range names {
		name = filepath.Join(s.folder, name)
		if _, err := os.Lstat(strings.TrimSuffix(name, reportSuffix) + profileSuffix); err != nil {
			unrecorded++
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return 0, err
		}
		if _, err := stderr.Write(text); err != nil {
			return 0, err
		}
	}
	switch {
	case len(names) == 0:
		fmt.Fprintf(stderr, "cheap record: %s has started no program that has left a report\n", strings.Join(s.args[:2], " "))
	case unrecorded > 0:
		fmt.Fprintf(stderr, "cheap record: %s not recorded, as programs without C are not; the files *%s in %s say why\n",
			were(unrecorded), reportSuffix, quoted(s.folder))
	}
	return exitCode(command.ProcessState), nil
}

func were(programs int) string {
	if programs == 1 {
		return "1 program was"
	}
	return fmt.Sprintf("%d programs were", programs)
}

// addReport adds the name of the report to those of the go command.
func (s *recordSettings) addReport() error {
	if s.reports == "" {
		return nil
	}
	f, err := os.OpenFile(s.reports, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(filepath.Base(s.report()) + "\x00") // in one write, so that it stays whole
	return errors.Join(err, f.Close())
}

// goQuoted returns arguments as the go command splits them: it knows quotes, but nothing that escapes them.
func goQuoted(args ...string) (string, error) {
	for i, arg := range args {
		switch {
		case !strings.ContainsAny(arg, " \t\n\r'\""):
		case !strings.Contains(arg, "'"):
			args[i] = "'" + arg + "'"
		case !strings.Contains(arg, `"`):
			args[i] = `"` + arg + `"`
		default:
			return "", usagef("the go command cannot pass on %s, which has both kinds of quotes", arg)
		}
	}
	return strings.Join(args, " "), nil
}

// unrecorded becomes the program, which cannot be recorded, and leaves a report that says so. It removes the
// folder, if that is not nil, which is not needed.
func (s *recordSettings) unrecorded(why error, folder *shared.Folder) error {
	if folder != nil {
		if err := folder.Remove(); err != nil {
			return err
		}
	}
	if err := s.takeName(); err != nil {
		return err
	}
	text := fmt.Sprintf("cheap record: not recorded: %v\n", why)
	if err := errors.Join(os.WriteFile(s.report(), []byte(text), 0o666), os.Remove(s.out), s.addReport()); err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", s.path, syscall.Exec(s.path, s.args, os.Environ()))
}

// takeName makes the file of the profile in the folder. It has the name of the program, and a number if there
// is one already. Others do the same at this moment: a report without a profile is written before its profile
// is removed, so it is looked for after the profile was made.
func (s *recordSettings) takeName() error {
	if err := os.MkdirAll(s.folder, 0o777); err != nil {
		return usagef("-o: %v", err)
	}
	for n := 1; ; n++ {
		name := filepath.Base(s.path)
		if n > 1 {
			name += fmt.Sprint("-", n)
		}
		s.out, s.page = filepath.Join(s.folder, name+profileSuffix), filepath.Join(s.folder, name+pageSuffix)
		f, err := os.OpenFile(s.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return usagef("-o: %v", err)
		}
		f.Close()
		_, report := os.Lstat(s.report())
		_, page := os.Lstat(s.page)
		if errors.Is(report, fs.ErrNotExist) && errors.Is(page, fs.ErrNotExist) {
			if n > 1 {
				s.beside = fmt.Sprintf(", beside those of %s", figure.Plural(n-1, "earlier run"))
			}
			return nil
		}
		if err := os.Remove(s.out); err != nil {
			return err
		}
	}
}

// report returns the name of the report of the profile.
func (s *recordSettings) report() string {
	return strings.TrimSuffix(s.out, profileSuffix) + reportSuffix
}
