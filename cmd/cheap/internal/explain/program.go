package explain

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	//go:embed inside/inside.go.txt
	insideText []byte
	//go:embed inside/where.go.txt
	whereText []byte
	//go:embed inside/nowhere.go.txt
	nowhereText []byte
)

// The names of the files that Build adds. The variables of a package get their values in the order
// of its files, where they do not need each other, and the go command sorts those of a folder by
// name. So the variable in startName gets its value first, which starts the profile: a hyphen comes
// before letters, digits, underscores and the period.
const (
	startName = "0-cheap_explain.go"
	whereName = "cheap_explain_where.go"
)

// canTellWhere reports whether inside/where.go.txt knows the system and the processor.
var canTellWhere = runtime.GOOS == "linux" && (runtime.GOARCH == "amd64" || runtime.GOARCH == "arm64")

// A Program is a main package that was built so that it profiles itself.
type Program struct {
	Path   string
	CallsC bool // it has cgo
	Exact  bool // the profile says at which instruction C was interrupted
}

// ErrNoProgram is the error of Build for a package that is no program.
var ErrNoProgram = errors.New("is no program")

// listed is what go list says of a package.
type listed struct {
	ImportPath string
	Dir        string
	Name       string
	CgoFiles   []string
	SFiles     []string
	Standard   bool
}

// Build builds a main package with files that profile it: the one in a folder, or the one that
// consists of files of Go, as for go run. What Build writes is in the folder out, and the package's
// own folder stays as it is.
func Build(ctx context.Context, source []string, out string) (*Program, error) {
	if err := checkSource(source); err != nil {
		return nil, err
	}
	dir, args := source[0], []string{"."} // it may be of another module
	if isGoFile(source[0]) {
		dir, args = "", source // files are those of the current module
	}
	main, usesC, exact, err := list(ctx, dir, args)
	if err != nil {
		return nil, err
	}
	if main.Name != "main" {
		return nil, fmt.Errorf("%s %w: its package is not main", strings.Join(source, " "), ErrNoProgram)
	}
	where := nowhereText
	if exact = exact && usesC && len(main.SFiles) == 0; exact { // cgo and Go assembly exclude each other
		where = whereText
	}
	overlay, err := writeOverlay(out, main.Dir, map[string][]byte{startName: insideText, whereName: where})
	if err != nil {
		return nil, err
	}
	if dir == "" {
		folder := filepath.Dir(source[0])
		args = slices.Concat([]string{filepath.Join(folder, startName)}, source, []string{filepath.Join(folder, whereName)})
	}
	p := &Program{Path: filepath.Join(out, "program.exe"), CallsC: usesC, Exact: exact}
	// The linker has to allow the name of the runtime's hooks for the end of a process.
	build := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-o", p.Path, "-overlay", overlay, "-ldflags=-checklinkname=0", "--"}, args)...)
	build.Dir = dir
	if _, err := outputOf(ctx, build); err != nil {
		return nil, err
	}
	return p, nil
}

// checkSource returns an error that wraps ErrNoProgram if a folder or a file is not there.
func checkSource(source []string) error {
	if isGoFile(source[0]) {
		for _, file := range source {
			if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
				return fmt.Errorf("%s %w: there is no such file", file, ErrNoProgram)
			}
		}
		return nil
	}
	if info, err := os.Stat(source[0]); err != nil || !info.IsDir() {
		return fmt.Errorf("%s %w: there is no such folder", source[0], ErrNoProgram)
	}
	if names, err := filepath.Glob(filepath.Join(source[0], "*.go")); err == nil && len(names) == 0 {
		return fmt.Errorf("%s %w: it has no Go files", source[0], ErrNoProgram)
	}
	return nil
}

// list asks the go command about a package and what it imports. Exact says that a traceback function
// may be added, which wants to be the only one.
func list(ctx context.Context, dir string, args []string) (main listed, usesC, exact bool, err error) {
	command := exec.CommandContext(ctx, "go", slices.Concat([]string{"list", "-deps", "-json=ImportPath,Dir,Name,CgoFiles,SFiles,Standard", "--"}, args)...)
	command.Dir = dir
	text, err := outputOf(ctx, command)
	if err != nil {
		return main, false, false, err
	}
	exact = canTellWhere
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			return main, usesC, exact, nil
		} else if err != nil {
			return main, false, false, err
		}
		usesC = usesC || p.ImportPath == "runtime/cgo"
		exact = exact && !strings.HasSuffix(p.ImportPath, "/cgosymbolizer")
		main = p // the last is the package itself
	}
}

// writeOverlay writes files to the folder out, and a file that has the go command find them in dir.
func writeOverlay(out, dir string, files map[string][]byte) (string, error) {
	overlay := map[string]map[string]string{"Replace": {}}
	for name, text := range files {
		file := filepath.Join(out, name)
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return "", err
		}
		overlay["Replace"][filepath.Join(dir, name)] = file
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	name := filepath.Join(out, "overlay.json")
	return name, os.WriteFile(name, text, 0o644)
}

// outputOf runs a command. An error has what it has said.
func outputOf(ctx context.Context, command *exec.Cmd) ([]byte, error) {
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		text := strings.Join(strings.Fields(stderr.String()), " ")
		if text == "" {
			text = err.Error()
		}
		if strings.Contains(text, "build constraints exclude all Go files") {
			text += "; if they use C, install a C compiler, such as gcc, or name one by CC, and do not set CGO_ENABLED to 0"
		}
		return nil, fmt.Errorf("%s: %s", strings.Join(command.Args[:2], " "), text)
	}
	return output, nil
}

// A Run is what a program has left.
type Run struct {
	Profile []byte
	Go      string
	Calls   uint64 // of C
	Ended   string // how the program ended, if that was not as it should
	Over    bool   // the length was over before
}

// Run runs the program until it ends, until the length is over if that is not 0, or until ctx is
// done. What the program prints goes to output.
func (p *Program) Run(ctx context.Context, args []string, out string, length time.Duration, stdin io.Reader, output io.Writer) (*Run, error) {
	folder := filepath.Join(out, "run")
	if err := os.Mkdir(folder, 0o755); err != nil {
		return nil, err
	}
	command := exec.Command(p.Path, args...)
	command.Stdin, command.Stdout, command.Stderr = stdin, output, output
	command.Env = append(os.Environ(), "CHEAP_EXPLAIN="+folder)
	command.WaitDelay = afterEnd
	if err := command.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	var over <-chan time.Time
	if length > 0 {
		over = time.After(length)
	}
	var r Run
	select {
	case err := <-ended:
		if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
			r.Ended = err.Error()
		}
	case <-over:
		r.Over = true
		r.Ended = p.stop(command, folder, ended)
	case <-ctx.Done():
		r.Ended = p.stop(command, folder, ended)
	}
	text, err := os.ReadFile(filepath.Join(folder, "calls"))
	if err != nil {
		how := r.Ended
		if how == "" {
			how = "it did not end by itself"
		}
		return nil, fmt.Errorf("the program has left no profile: %s; one that panics or that a signal ends leaves none, and neither does one that profiles itself before", how)
	}
	words := strings.Fields(string(text))
	if len(words) > 0 {
		r.Go = words[0]
		r.Calls, _ = strconv.ParseUint(words[len(words)-1], 10, 64)
	}
	r.Profile, err = os.ReadFile(filepath.Join(folder, "cpu.pprof"))
	return &r, err
}

// afterEnd is how long a program that has ended is waited for: processes that it has started may have
// its standard error.
const afterEnd = time.Second

// afterProfile is how long a program has after its profile. One in which all goroutines wait for
// each other ends by itself then, and says so: before, the profile keeps the runtime from noticing.
// It is a variable for tests.
var afterProfile = 200 * time.Millisecond

// stop has the program write its profile, and ends it. It returns how the program ended, if it did
// so by itself.
func (p *Program) stop(command *exec.Cmd, folder string, ended <-chan error) string {
	kill := func() string {
		command.Process.Kill()
		<-ended
		return ""
	}
	if err := os.WriteFile(filepath.Join(folder, "stop"), nil, 0o644); err != nil {
		return kill()
	}
	deadline := time.After(10 * time.Second)
	for written := false; ; {
		select {
		case err := <-ended:
			if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
				return err.Error()
			}
			return ""
		case <-deadline:
			return kill()
		case <-time.After(20 * time.Millisecond):
		}
		if _, err := os.Stat(filepath.Join(folder, "calls")); err == nil && !written {
			written, deadline = true, time.After(afterProfile)
		}
	}
}

// Source returns how many of the arguments name a program: a folder, a path that begins with a dot,
// or files of Go. It is 0 if the first argument does not.
func Source(args []string) int {
	files := 0
	for files < len(args) && isGoFile(args[files]) {
		files++
	}
	switch {
	case files > 0:
		return files
	case len(args) > 0 && isFolder(args[0]):
		return 1
	}
	return 0
}

// isGoFile reports whether an argument names a file of Go.
func isGoFile(arg string) bool {
	info, err := os.Stat(arg)
	return strings.HasSuffix(arg, ".go") && (err != nil || !info.IsDir())
}

func isFolder(arg string) bool {
	if info, err := os.Stat(arg); err == nil {
		return info.IsDir()
	}
	return slices.ContainsFunc([]string{"./", "../"}, func(s string) bool { return strings.HasPrefix(filepath.ToSlash(arg), s) })
}
