package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime/debug"
	"strings"
	"time"

	"github.com/cheapgo/cheap/internal/replay/resident"
)

// A row of another program is measured in a process that runs until the row is
// closed, so that rows of several programs can take turns. The process reads
// numbers of operations, one a line, and answers each with a sample. At 0, it
// releases what the Go heap does not use, before its memory is measured.

// A reply is the answer to one number.
type reply struct {
	Sample      sample
	Failed      string // the error, or ""; another number may follow it
	Unsupported bool   // the error is errors.ErrUnsupported, and the process ends
}

// unsupported is errors.ErrUnsupported, with the text of the process.
type unsupported struct{ text string }

func (e unsupported) Error() string { return e.text }
func (e unsupported) Unwrap() error { return errors.ErrUnsupported }

// Serve is that process. It returns at the end of its input.
func Serve(ctx context.Context, row Row, procs int, in io.Reader, out io.Writer) error {
	debug.SetGCPercent(gogc)
	debug.SetMemoryLimit(noLimit)
	u := &unit{row: &row, procs: procs}
	take := u.take
	if row.NoGC { // from here on, between the rounds as well
		debug.SetGCPercent(-1)
		take = func(_ context.Context, n int) (sample, error) { return u.takeNow(n) }
	}
	setProcs(procs)
	var opened error
	u.work, opened = row.Open(procs)
	if opened != nil && !errors.Is(opened, errors.ErrUnsupported) {
		return opened
	}
	defer u.close()
	numbers, replies := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var n int
		if err := numbers.Decode(&n); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if opened != nil {
			return replies.Encode(reply{Failed: opened.Error(), Unsupported: true})
		}
		if n == 0 {
			debug.FreeOSMemory()
			if err := replies.Encode(reply{}); err != nil {
				return err
			}
			continue
		}
		var r reply
		s, err := take(ctx, n)
		if err != nil {
			r.Failed = err.Error()
		} else {
			r.Sample = s
		}
		if err := replies.Encode(r); err != nil {
			return err
		}
	}
}

// Remote returns the Open of a row that another process measures. The process is
// that of command, and calls [Serve].
func Remote(command func(procs int) *exec.Cmd) func(procs int) (Work, error) {
	return func(procs int) (Work, error) {
		r, err := start(command(procs))
		if err != nil {
			return Work{}, err
		}
		return Work{Time: r.time, Heap: r.heap, Figures: r.figures, Resident: r.resident, Close: r.close}, nil
	}
}

// A remote is a process that measures a row.
type remote struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	numbers *json.Encoder
	replies *json.Decoder
	stderr  strings.Builder
	last    sample
}

func start(command *exec.Cmd) (*remote, error) {
	r := &remote{command: command}
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	command.Stderr = &r.stderr
	r.stdin, r.numbers, r.replies = stdin, json.NewEncoder(stdin), json.NewDecoder(stdout)
	return r, command.Start()
}

// time has the process do n operations.
func (r *remote) time(n int) (wall, cpu float64, err error) {
	var answer reply
	if err := r.numbers.Encode(n); err != nil {
		return 0, 0, r.died(err)
	}
	if err := r.replies.Decode(&answer); err != nil {
		return 0, 0, r.died(err)
	}
	if answer.Unsupported {
		return 0, 0, unsupported{answer.Failed}
	}
	if answer.Failed != "" {
		return 0, 0, errors.New(answer.Failed)
	}
	if answer.Sample.N != n {
		return 0, 0, fmt.Errorf("the child process did %d operations, not %d", answer.Sample.N, n)
	}
	r.last = answer.Sample
	return r.last.Wall, r.last.CPU, nil
}

// betweenSamples is the time between two samples of the memory of the process. A sample
// walks its page tables.
const betweenSamples = time.Millisecond

// onSample is told what each sample has, less what was there before. It is a variable for tests.
var onSample = func(int64) {}

// resident has the process do n operations, and samples its memory meanwhile.
func (r *remote) resident(n int) (int64, error) {
	if _, _, err := r.time(0); err != nil {
		return 0, err
	}
	memory, err := resident.Of(r.command.Process.Pid)
	if err != nil {
		_, _, err := r.time(n)
		return 0, err
	}
	defer memory.Close()
	before, err := memory.Bytes()
	if err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() {
		_, _, err := r.time(n)
		done <- err
	}()
	tick := time.NewTicker(betweenSamples)
	defer tick.Stop()
	for most := before; ; {
		select {
		case err := <-done:
			return most - before, err
		case <-tick.C:
			if now, err := memory.Bytes(); err == nil { // else the process has ended
				most = max(most, now)
				onSample(now - before)
			}
		}
	}
}

func (r *remote) figures() Figures { return r.last.Figures }

func (r *remote) heap() (allocs, bytes uint64) { return r.last.Allocs, r.last.Bytes }

// died says why the process does not answer. The process has ended then.
func (r *remote) died(err error) error {
	r.stdin.Close()
	if ended := r.command.Wait(); ended != nil {
		err = ended
	}
	return fmt.Errorf("child process: %w: %s", err, strings.TrimSpace(r.stderr.String()))
}

// close ends the process. It has nothing to save.
func (r *remote) close() {
	r.stdin.Close()
	if r.command.ProcessState == nil {
		r.command.Process.Kill()
		r.command.Wait()
	}
}
