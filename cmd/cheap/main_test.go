package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/replay/preload"
)

// commands are what this program is, if it has one of these names. Scripts and tests find them by
// PATH.
var commands = map[string]func(){"cheap": shortMain}

func TestMain(m *testing.M) { testscript.Main(keeper{m}, commands) }

// shortMain is the command, which measures no longer than a test needs.
func shortMain() {
	waysObjects, waysRounds = 1000, 1
	builtLab = os.Getenv("CHEAP_TEST_LAB")
	main()
}

// kept is a folder for what several tests use.
var kept string

// A keeper runs the tests, and removes that folder.
type keeper struct{ *testing.M }

func (k keeper) Run() int {
	var err error
	if kept, err = os.MkdirTemp("", "cheap-test-"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(kept)
	return k.M.Run()
}

// goCache is that of the go command, which has no home in a script.
var goCache = sync.OnceValue(func() string {
	text, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return "" // a script without a go command
	}
	return strings.TrimSpace(string(text))
})

// testLab is the laboratory for all tests, "" if there is no go command.
var testLab = sync.OnceValue(func() string {
	if _, err := exec.LookPath("go"); err != nil {
		return ""
	}
	program := filepath.Join(kept, "lab")
	if text, err := exec.Command("go", "build", "-C", "../../lab", "-o", program, ".").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("%v: %s", err, text))
	}
	return program
})

// TestScripts runs the command lines in testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			// Built with -race, a program would sleep for a second at its end.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv("GOCACHE", goCache())
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("CHEAP_TEST_LAB", testLab())
			box, err := filepath.Abs("../../inspect/blackbox/testdata/version1.box")
			env.Setenv("BOX", box)
			return err
		},
		Condition: func(cond string) (bool, error) {
			var err error
			switch cond {
			case "libc":
				_, err = peers.Lookup("libc")
			case "jemalloc":
				_, err = preload.Find("jemalloc")
			case "race":
				info, ok := debug.ReadBuildInfo()
				return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}), nil
			default:
				return false, errors.New("unknown condition " + cond)
			}
			return err == nil, nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"code":  cmdCode,
			"fht":   cmdFHT,
			"rows":  cmdRows,
			"bench": cmdBench,
			"lines": cmdLines,

			"linesof": cmdLinesOf,
		},
	})
}

// cmdCode is "code N cheap args...": the command exits with N, and says so in
// one line on stderr unless N is 0.
func cmdCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command [args...]")
	}
	code := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if want := args[0]; strconv.Itoa(code) != want {
		ts.Fatalf("exit code is %d, want %s", code, want)
	}
	if lines := strings.Count(ts.ReadFile("stderr"), "\n"); code != 0 && lines != 1 {
		ts.Fatalf("stderr has %d lines, want 1", lines)
	}
}

// cmdLines is "lines n prefix": n lines of stdout begin with prefix.
func cmdLines(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: lines n prefix")
	}
	n := 0
	for line := range strings.Lines(ts.ReadFile("stdout")) {
		if strings.HasPrefix(line, args[1]) {
			n++
		}
	}
	if strconv.Itoa(n) != args[0] {
		ts.Fatalf("%d lines begin with %q, want %s", n, args[1], args[0])
	}
}

// cmdLinesOf is "linesof stdout|stderr n": it has n lines.
func cmdLinesOf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: linesof stdout|stderr n")
	}
	if n := strings.Count(ts.ReadFile(args[0]), "\n"); strconv.Itoa(n) != args[1] {
		ts.Fatalf("%s has %d lines, want %s", args[0], n, args[1])
	}
}

// A closedWriter is a stdout that cannot be written to.
type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }
