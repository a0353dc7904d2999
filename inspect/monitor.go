package inspect

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/cheapgo/cheap/internal/watch/guard"
)

// monitorVariable is set in the monitor, the process that [Monitor] starts: to a colon, and the value that
// CHEAP_GUARD had.
const monitorVariable = "CHEAP_MONITOR"

// isMonitor says that this process is the monitor of another one.
var isMonitor = takeMonitorVariable()

// takeMonitorVariable reads the variable before main can change the environment, and sets the
// variables as they are in the other process: a process that this one starts is no monitor.
func takeMonitorVariable() bool {
	guardWas, isMonitor := strings.CutPrefix(os.Getenv(monitorVariable), ":")
	if isMonitor {
		_ = os.Unsetenv(monitorVariable)
		if _ = os.Unsetenv("CHEAP_GUARD"); guardWas != "" {
			_ = os.Setenv("CHEAP_GUARD", guardWas)
		}
	}
	return isMonitor
}

var monitored atomic.Bool

// A Crash is what is known of a process that has ended by a panic or a fault.
type Crash struct {
	Text  []byte // what the runtime has printed; of a fatal error the first line is missing
	Fault *Fault // if the crash was an access beside a guarded block or to a freed one, else nil
}

// Monitor starts the program a second time, as a process that watches this one. If this
// process ends by a panic, a fault or a fatal error of the runtime, report is called in the
// other process. A report of nil writes Crash.Fault, if it is not nil, to the standard error.
// Unlike [Guard], Monitor sees faults in all goroutines and in C code.
//
// Monitor is called at the start of main, before the program does anything that it should
// not do twice: the other process runs all that comes before the call as well. There Monitor
// does not return: the process ends after report. It has the standard error and the arguments
// of the program, no standard input, and takes a few MiB. It ignores SIGINT, SIGTERM,
// SIGHUP and SIGQUIT, and ends when this process has ended. If main does not reach the call in
// the other process, that process ends earlier, and crashes are not seen, although Monitor has
// returned nil.
//
// Monitor calls debug.SetCrashOutput, which has one file for a process. So a second call
// returns an error. SIGQUIT and SIGABRT are crashes, too. With Monitor a guarded block takes
// about 10 µs instead of 5. Where this process is the first of a container, the system ends
// the other one together with it, most likely before report is called: the program has to be
// started by another one there, such as by docker run -init. On Windows Monitor returns
// errors.ErrUnsupported.
func Monitor(report func(Crash)) error {
	if isMonitor {
		awaitCrash(report)
		os.Exit(0)
	}
	if runtime.GOOS == "windows" {
		return fmt.Errorf("cheap: inspect.Monitor: %w", errors.ErrUnsupported) // a process inherits no file but three
	}
	if monitored.Swap(true) {
		return errors.New("cheap: inspect.Monitor was called before")
	}
	err := monitor()
	if err != nil {
		monitored.Store(false)
	}
	return err
}

func monitor() error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	shared, err := os.CreateTemp("", "cheap-guard-*")
	if err != nil {
		return err
	}
	// Both processes have the file open. It has no name, so it is removed when both have ended.
	if err := errors.Join(os.Remove(shared.Name()), startMonitor(exe, shared)); err != nil {
		return errors.Join(err, shared.Close())
	}
	guard.Share(shared)
	return nil
}

// startMonitor starts the monitor.
func startMonitor(exe string, shared *os.File) error {
	cmd := exec.Command(exe, os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), monitorVariable+"=:"+os.Getenv("CHEAP_GUARD"), "CHEAP_GUARD=")
	cmd.ExtraFiles = []*os.File{shared} // sharedFile
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	defer w.Close() // SetCrashOutput has a copy
	cmd.Stdin = r
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := debug.SetCrashOutput(w, debug.CrashOptions{}); err != nil {
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	return cmd.Process.Release()
}

// sharedFile is the descriptor of the shared file in the monitor: the first
// behind the three that every process has.
const sharedFile = 3

// awaitCrash waits for the end of the other process, and reports its crash.
func awaitCrash(report func(Crash)) {
	// A signal for the terminal's process group reaches both processes. Signals are caught and not set
	// to be ignored, because a process that report starts would ignore them, too.
	signal.Notify(make(chan os.Signal, 1), terminalSignals...)
	shared := os.NewFile(sharedFile, "guarded blocks")
	defer shared.Close()
	text, err := io.ReadAll(os.Stdin)
	if err != nil || len(text) == 0 {
		return // the process has ended by itself
	}
	crash := Crash{Text: text}
	if table, err := guard.ReadTable(io.NewSectionReader(shared, 0, math.MaxInt64)); err != nil {
		fmt.Fprintln(os.Stderr, "cheap: inspect.Monitor:", err)
	} else {
		crash.Fault = faultIn(text, table)
	}
	switch {
	case report != nil:
		report(crash)
	case crash.Fault != nil:
		fmt.Fprintln(os.Stderr, crash.Fault)
	}
}

// faultAddress finds the address of a fault in what the runtime prints. The first form comes
// before the text that debug.SetCrashOutput says it writes, and may be missing. The others
// are of a fault in Go and in C. The runtime indents all lines of a panic's message but the
// first, which begins with "panic: ".
var faultAddress = regexp.MustCompile(`(?m)^unexpected fault address 0x([0-9a-f]+)|^(?:\[signal |PC=).*\baddr=0x([0-9a-f]+)`)

// faultIn returns the fault that a crash was, or nil.
func faultIn(text []byte, table *guard.Table) *Fault {
	m := faultAddress.FindSubmatch(text)
	if m == nil {
		return nil
	}
	addr, err := strconv.ParseUint(string(m[1])+string(m[2]), 16, strconv.IntSize)
	if err != nil {
		return nil
	}
	b, earlier, ok := table.Find(uintptr(addr))
	if !ok {
		return nil
	}
	return newFault(uintptr(addr), b, earlier)
}
