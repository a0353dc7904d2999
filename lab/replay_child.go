package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/cheapgo/cheap/internal/replay"
	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/replay/preload"
	"github.com/cheapgo/cheap/internal/result"
)

// replayCommandName is a command that only this program calls: a process that replays one trace on
// one allocator. With a library that is preloaded, it runs as long as the trace is measured, and is
// idle unless it has a turn. Another one measures what is resident, and ends.
const replayCommandName = "replay-child"

// A turn is what the process is asked for.
type turn string

const (
	takeTime   turn = "time"
	takeMemory turn = "memory"
	verify     turn = "verify" // every block
)

// A replayReply is the answer. The first one comes unasked, when the trace is read.
type replayReply struct {
	Took        time.Duration
	Memory      result.Memory
	Missing     string // why the malloc of the process is not that of the library
	Unsupported string // why memory is not measured here
	Failed      string
}

// replayChildCommand is that process. Its arguments are an allocator, a trace, and, unless that is
// "", the library that has been preloaded.
func replayChildCommand(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 3 {
		return usagef("the arguments are an allocator, a trace and a library; only lab replay runs this command")
	}
	replies, turns := json.NewEncoder(stdout), json.NewDecoder(stdin)
	if library := args[2]; library != "" {
		if err := preload.Check(library); err != nil {
			return replies.Encode(replayReply{Missing: err.Error()})
		}
	}
	info, err := peers.Lookup(args[0])
	if err != nil {
		return usagef("%v", err)
	}
	tr, err := newSource(args[1]).read()
	if err != nil {
		return err
	}
	var session *replay.Session // of the turns that take the time
	defer func() {
		if session != nil {
			session.Close()
		}
	}()
	if err := replies.Encode(replayReply{}); err != nil {
		return err
	}
	for {
		var asked turn
		if err := turns.Decode(&asked); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var reply replayReply
		switch asked {
		case verify:
			err = replay.Verify(ctx, tr, info)
		case takeMemory:
			reply.Memory, err = replay.MeasureMemory(tr, info)
		default:
			if session == nil {
				if session, err = replay.NewSession(tr, []peers.Info{info}); err != nil {
					return err
				}
			}
			var took []time.Duration
			if took, err = session.Round(ctx, 0); err == nil {
				reply.Took = took[0]
			}
		}
		if errors.Is(err, errors.ErrUnsupported) {
			reply.Unsupported = err.Error()
		} else if err != nil {
			reply.Failed = err.Error()
		}
		if err := replies.Encode(reply); err != nil {
			return err
		}
	}
}

// A replayChild is that process, seen from its parent. It is a replay.Turner.
type replayChild struct {
	name    string // of the allocator, or of the library
	child   *exec.Cmd
	stdin   io.WriteCloser
	turns   *json.Encoder
	replies *json.Decoder
	stderr  strings.Builder
}

// startReplay starts the process, with a library preloaded unless its path is "", and waits until
// it has read the trace. The error is a *preload.MissingError if the malloc there is not that of the
// library.
func startReplay(ctx context.Context, allocator string, l preload.Library, src source) (*replayChild, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &replayChild{name: allocator, child: exec.CommandContext(ctx, self, replayCommandName, allocator, src.arg, l.Path)}
	if l.Path != "" {
		c.name = l.Name
		c.child.Env = append(os.Environ(), l.Env())
	}
	c.child.Stderr = &c.stderr
	if c.stdin, err = c.child.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := c.child.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.turns, c.replies = json.NewEncoder(c.stdin), json.NewDecoder(stdout)
	if err := c.child.Start(); err != nil {
		return nil, err
	}
	if _, err := c.reply(); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// Turn replays the trace once.
func (c *replayChild) Turn() (time.Duration, error) {
	reply, err := c.ask(takeTime)
	return reply.Took, err
}

func (c *replayChild) ask(t turn) (replayReply, error) {
	if err := c.turns.Encode(t); err != nil {
		return replayReply{}, c.died(err)
	}
	return c.reply()
}

// errNotMeasured is errors.ErrUnsupported, with the text of the process.
type errNotMeasured struct{ reason string }

func (e errNotMeasured) Error() string { return e.reason }
func (e errNotMeasured) Unwrap() error { return errors.ErrUnsupported }

func (c *replayChild) reply() (reply replayReply, err error) {
	if err := c.replies.Decode(&reply); err != nil {
		return reply, c.died(err)
	}
	switch {
	case reply.Missing != "":
		err = &preload.MissingError{Name: c.name, Reason: reply.Missing}
	case reply.Unsupported != "":
		err = errNotMeasured{reply.Unsupported}
	case reply.Failed != "":
		err = fmt.Errorf("with %s: %s", c.name, reply.Failed)
	}
	return reply, err
}

// died says why the process does not answer. The process has ended then.
func (c *replayChild) died(err error) error {
	c.stdin.Close()
	if ended := c.child.Wait(); ended != nil {
		err = ended
	}
	return fmt.Errorf("process with %s: %w: %s", c.name, err, strings.TrimSpace(c.stderr.String()))
}

// close ends the process. It has nothing to save.
func (c *replayChild) close() {
	c.stdin.Close()
	if c.child.ProcessState == nil {
		c.child.Process.Kill()
		c.child.Wait()
	}
}

// measureMemory has a process of its own replay the trace once. The error is errors.ErrUnsupported
// where the system does not report resident memory.
func measureMemory(ctx context.Context, allocator string, l preload.Library, src source) (*result.Memory, error) {
	c, err := startReplay(ctx, allocator, l, src)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	} else if err != nil {
		return nil, err
	}
	defer c.close()
	reply, err := c.ask(takeMemory)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return &reply.Memory, err
}
