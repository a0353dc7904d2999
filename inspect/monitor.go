package inspect

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"runtime/debug"
	"strconv"

	"github.com/cheapgo/cheap/internal/guard"
)

// monitorTable is the environment variable of the process that watches: the name of the file
// with the guarded blocks.
const monitorTable = "CHEAP_MONITOR_TABLE"

// A Crash is what is known of a process that has ended by a panic or a fault.
type Crash struct {
	Text  []byte // what the runtime has printed, from the signal or the panic on
	Fault *Fault // if the crash was an access beside a guarded block or to a freed one, else nil
}

// Monitor starts the program a second time, as a process that watches this one. If this
// process ends by a panic, a fault or a fatal error of the runtime, report is called in the
// other process. A report of nil writes Crash.Fault, if it is not nil, to the standard error.
// Faults in all goroutines are seen, and those in C code, other than by [Guard].
//
// Monitor is called at the start of main, before the program does anything that it should
// not do twice. In the process that watches it does not return: that ends after report. It
// takes the standard error and the arguments of the program, no standard input, and a few MiB.
// It ignores signals, and ends when this process has ended.
//
// Monitor calls debug.SetCrashOutput, which has one file for a process. The processes share a
// temporary file, which the one that watches removes. Where this process is the first of a
// container, the system ends the other one together with it, most likely before report is
// called: the program has to be started by another one there, such as by docker run -init.
func Monitor(report func(Crash)) error {
	if name := os.Getenv(monitorTable); name != "" {
		watch(name, report)
		os.Exit(0)
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	shared, err := os.CreateTemp("", "cheap-guard-*")
	if err != nil {
		return err
	}
	if err := startMonitor(exe, shared); err != nil {
		return errors.Join(err, shared.Close(), os.Remove(shared.Name()))
	}
	guard.Share(shared)
	return nil
}

// startMonitor starts the process that watches.
func startMonitor(exe string, shared *os.File) error {
	cmd := exec.Command(exe, os.Args[1:]...)
	cmd.Env = append(os.Environ(), monitorTable+"="+shared.Name(), "CHEAP_GUARD=")
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

// watch waits for the end of the other process, and reports its crash.
func watch(name string, report func(Crash)) {
	signal.Ignore() // one for the terminal's process group reaches both
	shared, err := os.Open(name)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cheap: inspect.Monitor:", err)
		return
	}
	_ = os.Remove(name) // a system that refuses does so until the file is closed
	defer func() {
		_ = shared.Close()
		_ = os.Remove(name)
	}()
	text, err := io.ReadAll(os.Stdin)
	if err != nil || len(text) == 0 {
		return // the process has ended by itself
	}
	crash := Crash{Text: text}
	if table, err := guard.ReadTable(shared); err != nil {
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
// before the text that debug.SetCrashOutput says it writes, and may be missing.
var faultAddress = regexp.MustCompile(`(?m)^unexpected fault address 0x([0-9a-f]+)|\baddr=0x([0-9a-f]+)`)

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
	b, alloc, free, ok := table.Find(uintptr(addr))
	if !ok {
		return nil
	}
	return newFault(uintptr(addr), b, alloc, free)
}
