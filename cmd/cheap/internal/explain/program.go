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

// Build builds the main package in a folder with files that profile it. They are in the folder
// out, and the package's own folder stays as it is.
func Build(ctx context.Context, pkg, out string) (*Program, error) {
	if info, err := os.Stat(pkg); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("%s %w: there is no such folder", pkg, ErrNoProgram)
	}
	if names, err := filepath.Glob(filepath.Join(pkg, "*.go")); err == nil && len(names) == 0 {
		return nil, fmt.Errorf("%s %w: it has no Go files", pkg, ErrNoProgram)
	}
	list := exec.CommandContext(ctx, "go", "list", "-deps", "-json=ImportPath,Dir,Name,CgoFiles,SFiles,Standard", ".")
	list.Dir = pkg // it may be of another module
	text, err := outputOf(ctx, list)
	if err != nil {
		return nil, err
	}
	var main listed
	exact := canTellWhere
	usesC := false
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p listed
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		usesC = usesC || p.ImportPath == "runtime/cgo"
		exact = exact && !strings.HasSuffix(p.ImportPath, "/cgosymbolizer") // it wants to be the only one
		main = p                                                            // the last is the package itself
	}
	if main.Name != "main" {
		return nil, fmt.Errorf("%s %w: its package is not main", pkg, ErrNoProgram)
	}
	exact = exact && usesC && len(main.SFiles) == 0 // cgo and Go assembly exclude each other
	files := map[string][]byte{"zz_cheap_explain.go": insideText}
	if exact {
		files["zz_cheap_explain_where.go"] = whereText
	}
	overlay := map[string]map[string]string{"Replace": {}}
	for name, text := range files {
		file := filepath.Join(out, name)
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return nil, err
		}
		overlay["Replace"][filepath.Join(main.Dir, name)] = file
	}
	text, err = json.Marshal(overlay)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(out, "overlay.json")
	if err := os.WriteFile(name, text, 0o644); err != nil {
		return nil, err
	}
	p := &Program{Path: filepath.Join(out, "program.exe"), CallsC: usesC, Exact: exact}
	// The linker has to allow the name of the runtime's hooks for the end of a process.
	build := exec.CommandContext(ctx, "go", "build", "-o", p.Path, "-overlay", name, "-ldflags=-checklinkname=0", ".")
	build.Dir = pkg
	if _, err := outputOf(ctx, build); err != nil {
		return nil, err
	}
	return p, nil
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
		if err != nil {
			r.Ended = err.Error()
		}
	case <-over:
		p.stop(command, folder, ended)
	case <-ctx.Done():
		p.stop(command, folder, ended)
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

// stop has the program write its profile, and ends it.
func (p *Program) stop(command *exec.Cmd, folder string, ended <-chan error) {
	if err := os.WriteFile(filepath.Join(folder, "stop"), nil, 0o644); err != nil {
		command.Process.Kill()
		return
	}
	deadline := time.After(10 * time.Second)
	for {
		select {
		case <-ended:
			return
		case <-deadline:
			command.Process.Kill()
			<-ended
			return
		case <-time.After(20 * time.Millisecond):
		}
		if _, err := os.Stat(filepath.Join(folder, "calls")); err == nil {
			command.Process.Kill()
			<-ended
			return
		}
	}
}

// IsPackage reports whether an argument names a package: a folder, or a path that begins with a
// dot.
func IsPackage(arg string) bool {
	if info, err := os.Stat(arg); err == nil {
		return info.IsDir()
	}
	return slices.ContainsFunc([]string{"./", "../"}, func(s string) bool { return strings.HasPrefix(filepath.ToSlash(arg), s) })
}
