package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/cheapgo/cheap/internal/replay/peers"
)

// commands are what this program is, if it has one of these names. Scripts and tests find them by
// PATH.
var commands = map[string]func(){"cheap": shortMain}

func TestMain(m *testing.M) { testscript.Main(keeper{m}, commands) }

// shortMain is the command, which measures no longer than a test needs.
func shortMain() {
	waysObjects, waysRounds = 1000, 1
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
	if err := os.Setenv("XDG_CACHE_HOME", kept); err != nil { // for the library that cheap record compiles
		panic(err)
	}
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

// TestScripts runs the command lines in testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			// Built with -race, a program would sleep for a second at its end.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv("GOCACHE", goCache())
			env.Setenv("HOME", env.WorkDir)
			box, err := filepath.Abs("../../inspect/blackbox/testdata/version1.box")
			env.Setenv("BOX", box)
			return err
		},
		Condition: func(cond string) (bool, error) {
			if cond != "libc" {
				return false, errors.New("unknown condition " + cond)
			}
			_, err := peers.Lookup("libc")
			return err == nil, nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"code": cmdCode,
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

// TestUsageIsNarrow checks that the usage fits a terminal of 80 columns.
func TestUsageIsNarrow(t *testing.T) {
	for line := range strings.Lines(usage) {
		if n := len(strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "\t", "        ")); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}
