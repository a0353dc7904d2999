// Survey runs cheapvet over public modules with cgo, and counts what it finds.
//
//	go build -o survey ./survey && ./survey -cheapvet="$(which cheapvet)" -out=results survey/modules.txt
//
// Modules come from the module proxy, one after the other. One that is not served, has no file with
// cgo for this system, or cannot be read is skipped, with the reason. Nothing of a module is built or
// run: cheapvet needs no C compiler and no headers.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "survey: %v\n", err)
		os.Exit(1)
	}
}

// settings are the arguments.
type settings struct {
	cheapvet string
	out      string
	compare  string
	timeout  time.Duration
	memory   int // GiB of address space of a child process
}

// run surveys the modules of a file, and prints a line for each.
func run(args []string, stdout io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("survey", flag.ContinueOnError)
	flags.StringVar(&s.cheapvet, "cheapvet", "cheapvet", "the `command` that looks at a module")
	flags.StringVar(&s.out, "out", "", "write modules.tsv and findings.tsv to this `folder`; a module that is not served keeps what they have")
	flags.StringVar(&s.compare, "compare", "", "fail if something else is found than the files in this `folder` have")
	flags.DurationVar(&s.timeout, "timeout", 3*time.Minute, "how long a module may take")
	flags.IntVar(&s.memory, "memory", 8, "`GiB` of address space of a process")
	from := flags.String("figures", "", "only print the tables of lab/survey/README.md, from the files in this `folder`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *from != "" {
		text, err := figures(*from)
		if err == nil {
			_, err = io.WriteString(stdout, text)
		}
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("want one file with a module@version a line")
	}
	text, err := os.ReadFile(flags.Arg(0))
	if err != nil {
		return err
	}
	if s.cheapvet, err = exec.LookPath(s.cheapvet); err != nil {
		return err
	}
	if s.cheapvet, err = filepath.Abs(s.cheapvet); err != nil { // it runs in other folders
		return err
	}
	stored := results{}
	if dir := cmp.Or(s.compare, s.out); dir != "" {
		if stored, err = readResults(dir); err != nil {
			return err
		}
	}
	found, order := results{}, []string{}
	for line := range strings.Lines(string(text)) {
		if line, _, _ = strings.Cut(line, "#"); strings.TrimSpace(line) == "" {
			continue
		}
		m := &module{name: strings.TrimSpace(line)}
		began := time.Now()
		if err := s.survey(m); err != nil {
			m.skipped = reason(err)
		}
		if _, err := fmt.Fprintf(stdout, "%s\t%.1f s\n", m.row(), time.Since(began).Seconds()); err != nil {
			return err
		}
		found[m.name], order = m.result(), append(order, m.name)
		if before, ok := stored[m.name]; ok && strings.HasPrefix(m.skipped, notServed) {
			found[m.name] = before
		}
		if s.out != "" { // after each module, since a run takes many minutes
			if err := found.write(s.out, order); err != nil {
				return err
			}
		}
	}
	if s.compare == "" {
		return nil
	}
	return stored.compare(found, order)
}

// A module is a line of the file, and what was found.
type module struct {
	name     string // with the version
	skipped  string // why nothing was looked at
	packages int    // with cgo, looked at
	broken   int    // with cgo, not looked at
	lines    int    // of the files with cgo of the packages that were looked at
	strings  stringCount
	lost     int // strings that nothing has, of cfree
	findings []finding
}

// notServed begins the reason of a module that the module proxy does not have.
const notServed = "not served"

// A finding is one of cheapvet.
type finding struct {
	Analyzer, Kind string
	Place          string // file:line, within the module
	Message        string
}

// survey looks at a module.
func (s *settings) survey(m *module) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "survey")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // as the go command prints it
		return err
	}
	if err := s.copyModule(ctx, m.name, dir); err != nil {
		return err
	}
	packages, err := s.cgoPackages(ctx, dir)
	if err != nil {
		return err
	}
	if len(packages) == 0 {
		return errors.New("no file with cgo for this system")
	}
	out, messages, err := s.command(ctx, dir, s.cheapvet, "-json", "-tests=false", "./...")
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || len(out) == 0) {
		return err
	}
	findings, err := parseFindings(out, dir)
	if err != nil {
		return err
	}
	for path, p := range packages {
		if strings.Contains(messages, "cheapvet: "+path+": ") {
			m.broken++
			continue
		}
		m.packages++
		m.lines += p.lines
		m.strings.all += p.strings.all
		m.strings.inline += p.strings.inline
	}
	if m.packages == 0 {
		return fmt.Errorf("no package with cgo can be read: %s", strings.TrimPrefix(firstLine(messages), "cheapvet: "))
	}
	m.findings = findings
	for _, f := range findings {
		if f.Kind == "dropped" && strings.Contains(f.Message, " C.CString ") {
			m.lost++
		}
	}
	return nil
}

// copyModule downloads a module, and copies it to where go.mod can be written.
func (s *settings) copyModule(ctx context.Context, name, dir string) error {
	out, messages, err := s.command(ctx, dir, "go", "mod", "download", "-json", name)
	if ctx.Err() != nil {
		return err
	}
	var info struct{ Dir, Error string }
	if json.Unmarshal(out, &info) != nil || info.Dir == "" {
		return fmt.Errorf("%s: %s", notServed, firstLine(cmp.Or(info.Error, messages, fmt.Sprint(err))))
	}
	if err := os.CopyFS(dir, os.DirFS(info.Dir)); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	path, _, _ := strings.Cut(name, "@")
	return os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+path+"\n\ngo 1.21\n"), 0o666)
}

// A cgoPackage is what its files with cgo have.
type cgoPackage struct {
	lines   int
	strings stringCount
}

// cgoPackages returns the packages with cgo, by their paths.
func (s *settings) cgoPackages(ctx context.Context, dir string) (map[string]cgoPackage, error) {
	out, messages, err := s.command(ctx, dir, "go", "list", "-e", "-json=ImportPath,Dir,CgoFiles", "./...")
	if err != nil {
		return nil, fmt.Errorf("go list: %s", firstLine(messages))
	}
	packages := map[string]cgoPackage{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct {
			ImportPath, Dir string
			CgoFiles        []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		for _, file := range p.CgoFiles {
			strings, lines, err := countStrings(filepath.Join(p.Dir, file))
			if err != nil {
				return nil, err
			}
			sum := packages[p.ImportPath]
			sum.lines += lines
			sum.strings.all += strings.all
			sum.strings.inline += strings.inline
			packages[p.ImportPath] = sum
		}
	}
}

// command runs a command in a folder with a bound on its memory, and returns what it prints to stdout
// and to stderr.
func (s *settings) command(ctx context.Context, dir, name string, args ...string) ([]byte, string, error) {
	const limited = `ulimit -v "$0" && exec "$@"`
	c := exec.CommandContext(ctx, "sh", append([]string{"-c", limited, fmt.Sprint(s.memory << 20), name}, args...)...)
	c.Dir = dir
	c.Env = append(os.Environ(), "CGO_ENABLED=1", "GOWORK=off", "GOFLAGS=-mod=mod")
	c.WaitDelay = time.Second // the go command that cheapvet has started may keep stdout
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if ctx.Err() != nil {
		err = fmt.Errorf("took longer than %v", s.timeout)
	}
	return out, stderr.String(), err
}

// parseFindings reads what cheapvet -json prints for a module in a folder.
func parseFindings(out []byte, dir string) ([]finding, error) {
	var all map[string]map[string]json.RawMessage // by package and analyzer
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("cheapvet -json: %w", err)
	}
	var list []finding
	for path, analyzers := range all {
		for name, raw := range analyzers {
			var diagnostics []struct{ Category, Posn, Message string }
			if err := json.Unmarshal(raw, &diagnostics); err != nil {
				return nil, fmt.Errorf("cheapvet -json: %s: %s: %w", path, name, err)
			}
			for _, d := range diagnostics {
				place, err := filepath.Rel(dir, d.Posn)
				if err != nil {
					return nil, err
				}
				list = append(list, finding{name, d.Category, filepath.ToSlash(place), d.Message})
			}
		}
	}
	slices.SortFunc(list, func(a, b finding) int {
		return cmp.Or(strings.Compare(a.Analyzer, b.Analyzer), strings.Compare(a.Place, b.Place), strings.Compare(a.Message, b.Message))
	})
	list = slices.Compact(list)
	for i := range list {
		list[i].Place = list[i].Place[:strings.LastIndexByte(list[i].Place, ':')] // without the column
	}
	return list, nil
}

// folder is where something is on this machine.
var folder = regexp.MustCompile(` in (?:[A-Za-z]:)?[/\\]\S+`)

// reason writes an error in one line that does not depend on the machine.
func reason(err error) string {
	text, _, _ := strings.Cut(strings.Join(strings.Fields(err.Error()), " "), ": reading ") // from the proxy
	return folder.ReplaceAllString(text, "")
}

func firstLine(text string) string {
	s := bufio.NewScanner(strings.NewReader(text))
	s.Scan()
	return s.Text()
}
