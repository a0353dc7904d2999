//go:build linux && cgo

// Command verdict is a corpus for the verdict of `cheap record`: programs in which something is planted, and
// healthy ones, each with what is true of it, written before any run by one who had not read the rules.
//
//	go run ./lab/verdict -run               # each once: 6 minutes or more, and some minutes to build
//	go run ./lab/verdict -run -n 5 -busy 8  # five times each, beside 8 busy processes
//	go run ./lab/verdict -run -only '^leak' # those with such a name
//	go run ./lab/verdict arenas             # the program alone
//
// A sentence is right if it names the planted line or cause, and accuses nothing else. Who changes a row
// because of a sentence that was printed makes the corpus worthless.
package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

func main() {
	run := flag.Bool("run", false, "record the programs, and judge the verdicts")
	n := flag.Int("n", 1, "record each program so often")
	busy := flag.Int("busy", 0, "beside so many processes that compute")
	jobs := flag.Int("j", 1, "record so many at a time")
	only := flag.String("only", "", "those with a name that matches this `pattern`")
	spin := flag.Bool("spin", false, "compute until the parent ends, and do nothing else")
	flag.Parse()
	switch {
	case *spin:
		for parent := os.Getppid(); os.Getppid() == parent; {
			for range 1_000_000 {
			}
		}
	case *run:
		if err := corpus(os.Stdout, *n, *busy, *jobs, *only); err != nil {
			fmt.Fprintln(os.Stderr, "verdict:", err)
			os.Exit(1)
		}
	default:
		at := slices.IndexFunc(table, func(p planted) bool { return p.name == flag.Arg(0) && p.run != nil })
		if at < 0 {
			flag.Usage()
			os.Exit(2)
		}
		table[at].run()
	}
}

const (
	limit    = 8 << 20         // KiB of data: what leaks on purpose must not take the machine
	patience = 5 * time.Minute // for one recording: it ends what hangs, and a busy machine takes a minute
	killed   = 128 + 9         // the exit code of the program abort
)

// lab is where programs are recorded.
type lab struct {
	dir, cheap, library, self string
}

// corpus records and judges the programs, and prints a table.
func corpus(w io.Writer, n, busy, jobs int, only string) error {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "verdict")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	chosen := slices.DeleteFunc(slices.Clone(table), func(p planted) bool { return !pattern.MatchString(p.name) })
	l, err := build(dir, chosen)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range busy {
		if err := exec.CommandContext(ctx, l.self, "-spin").Start(); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "%-16s %5s  %s\n", "case", "right", "verdict, as often as it was printed")
	right, runs := 0, 0
	var print sync.Mutex
	var group sync.WaitGroup
	tokens := make(chan struct{}, jobs)
	for _, p := range chosen {
		tokens <- struct{}{}
		group.Go(func() {
			defer func() { <-tokens }()
			good, seen := 0, map[string]int{}
			for i := range n {
				sentence, wrong := l.record(ctx, p, filepath.Join(dir, fmt.Sprint(p.name, i)))
				if wrong = cmp.Or(wrong, p.judge(sentence)); wrong == "" {
					good++
				} else {
					sentence += "\n\t\twrong: " + wrong
				}
				seen[sentence]++
			}
			print.Lock()
			defer print.Unlock()
			right, runs = right+good, runs+n
			fmt.Fprintf(w, "%-16s %2d/%-2d  %s\n", p.name, good, n, p.truth)
			for _, sentence := range slices.Sorted(maps.Keys(seen)) {
				fmt.Fprintf(w, "\t%d×  %s\n", seen[sentence], sentence)
			}
		})
	}
	group.Wait()
	fmt.Fprintf(w, "%d of %d right\n", right, runs)
	return nil
}

// build makes the command, its library, this program and the real ones in a folder.
func build(dir string, chosen []planted) (*lab, error) {
	text, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/cheapgo/cheap/lab/verdict").Output()
	if err != nil {
		return nil, fmt.Errorf("the checkout is not found from here: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(text)))
	l := &lab{dir: dir, cheap: filepath.Join(dir, "cheap"), library: filepath.Join(dir, "libcheap.so"), self: filepath.Join(dir, "planted")}
	for _, command := range [][]string{
		{filepath.Join(root, "../cmd/cheap"), "go", "build", "-o", l.cheap, "."},
		{filepath.Join(root, "verdict"), "go", "build", "-o", l.self, "."},
		{dir, l.cheap, "record", "-build", l.library},
	} {
		if _, err := output(command[0], command[1:]...); err != nil {
			return nil, err
		}
	}
	module := filepath.Join(dir, "module")
	if err := os.CopyFS(module, os.DirFS(filepath.Join(root, "followed/testdata"))); err != nil {
		return nil, err
	}
	for _, ending := range []string{".mod", ".sum"} {
		if err := os.Rename(filepath.Join(module, "followed"+ending), filepath.Join(module, "go"+ending)); err != nil {
			return nil, err
		}
	}
	for _, p := range chosen {
		if p.real == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, p.real)); err == nil {
			continue
		}
		if _, err := output(module, "go", "build", "-o", filepath.Join(dir, p.real), "./"+p.real); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// output runs a command in a folder, without the workspace.
func output(dir string, args ...string) (string, error) {
	c := exec.Command(args[0], args[1:]...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GOWORK=off")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	text, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%v: %w: %s", args, err, stderr.Bytes())
	}
	return string(text), nil
}

// record records a program, and returns what the report says, and why that cannot be judged.
func (l *lab) record(ctx context.Context, p planted, dir string) (sentence, wrong string) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err.Error()
	}
	program, args := l.self, []string{p.name}
	if p.real != "" {
		program = filepath.Join(l.dir, p.real)
	}
	if p.args != nil {
		args = p.args
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	command := []string{"-c", fmt.Sprintf(`ulimit -d %d; exec "$@"`, limit), "sh", l.cheap, "record", "-library", l.library, "-o", "page.html", "--", program}
	c := exec.CommandContext(ctx, "sh", append(command, args...)...)
	c.Dir = dir
	c.WaitDelay = time.Second
	if p.preload != "" {
		c.Env = append(os.Environ(), "LD_PRELOAD="+p.preload)
	}
	report, err := c.CombinedOutput()
	if code := c.ProcessState.ExitCode(); code != 0 && code != killed {
		return "", fmt.Sprintf("nothing was planted: %v: %s", err, report)
	}
	if sentence = verdict(string(report)); sentence == "" {
		return "", fmt.Sprintf("there is no verdict in %q", report)
	}
	page, err := os.ReadFile(filepath.Join(dir, "page.html"))
	if err != nil {
		return sentence, err.Error()
	}
	before := func(text string) string { text, _, _ = strings.Cut(text, ". To do"); return text }
	if on := onPage(string(page)); !strings.EqualFold(before(on), before(sentence)) {
		return sentence, "the page has " + on
	}
	return sentence, ""
}
