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
)

// nativeCommandName is a command that only this program calls: the child process
// that replays a trace on the malloc of a preloaded library. The child runs as long as
// the trace is measured, and is idle unless it has a turn.
const nativeCommandName = "replay-native"

// A nativeTurn asks the child for a turn.
type nativeTurn struct {
	Verify bool // instead of taking the time, verify every block
}

// A nativeReply is the answer. The first one comes unasked, when the trace is read.
type nativeReply struct {
	Took    time.Duration
	Missing string // why the malloc of the child is not that of the library
	Failed  string
}

// nativeCommand is the child: its arguments are a trace and a library.
func nativeCommand(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 2 {
		return usagef("the arguments are a trace and a library; only cheap replay runs this command")
	}
	replies, turns := json.NewEncoder(stdout), json.NewDecoder(stdin)
	if err := preload.Check(args[1]); err != nil {
		return replies.Encode(nativeReply{Missing: err.Error()})
	}
	info, err := peers.Lookup("native")
	if err != nil {
		return err
	}
	tr, err := newSource(args[0]).read()
	if err != nil {
		return err
	}
	session, err := replay.NewSession(tr, []peers.Info{info})
	if err != nil {
		return err
	}
	defer session.Close()
	if err := replies.Encode(nativeReply{}); err != nil {
		return err
	}
	for {
		var turn nativeTurn
		if err := turns.Decode(&turn); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var reply nativeReply
		var took []time.Duration
		if turn.Verify {
			err = replay.Verify(ctx, tr, info)
		} else if took, err = session.Round(ctx, 0); err == nil {
			reply.Took = took[0]
		}
		if err != nil {
			reply.Failed = err.Error()
		}
		if err := replies.Encode(reply); err != nil {
			return err
		}
	}
}

// A nativeChild is that process. It is a replay.Turner.
type nativeChild struct {
	library preload.Library
	child   *exec.Cmd
	stdin   io.WriteCloser
	turns   *json.Encoder
	replies *json.Decoder
	stderr  strings.Builder
}

// startNative starts the child, and waits until it has read the trace. The error is a
// *preload.MissingError if the malloc there is not that of the library.
func startNative(ctx context.Context, l preload.Library, src source) (*nativeChild, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	n := &nativeChild{library: l, child: exec.CommandContext(ctx, self, nativeCommandName, src.arg, l.Path)}
	n.child.Env = append(os.Environ(), l.Env())
	n.child.Stderr = &n.stderr
	if n.stdin, err = n.child.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := n.child.StdoutPipe()
	if err != nil {
		return nil, err
	}
	n.turns, n.replies = json.NewEncoder(n.stdin), json.NewDecoder(stdout)
	if err := n.child.Start(); err != nil {
		return nil, err
	}
	if _, err := n.reply(); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// Turn replays the trace once.
func (n *nativeChild) Turn() (time.Duration, error) { return n.ask(nativeTurn{}) }

// verify replays the trace with every block verified.
func (n *nativeChild) verify() error {
	_, err := n.ask(nativeTurn{Verify: true})
	return err
}

func (n *nativeChild) ask(turn nativeTurn) (time.Duration, error) {
	if err := n.turns.Encode(turn); err != nil {
		return 0, n.died(err)
	}
	return n.reply()
}

func (n *nativeChild) reply() (time.Duration, error) {
	var reply nativeReply
	if err := n.replies.Decode(&reply); err != nil {
		return 0, n.died(err)
	}
	switch {
	case reply.Missing != "":
		return 0, &preload.MissingError{Name: n.library.Name, Reason: reply.Missing}
	case reply.Failed != "":
		return 0, fmt.Errorf("with %s: %s", n.library.Name, reply.Failed)
	}
	return reply.Took, nil
}

// died says why the process does not answer. The process has ended then.
func (n *nativeChild) died(err error) error {
	n.stdin.Close()
	if ended := n.child.Wait(); ended != nil {
		err = ended
	}
	return fmt.Errorf("process with %s: %w: %s", n.library.Name, err, strings.TrimSpace(n.stderr.String()))
}

// close ends the process. It has nothing to save.
func (n *nativeChild) close() {
	n.stdin.Close()
	if n.child.ProcessState == nil {
		n.child.Process.Kill()
		n.child.Wait()
	}
}
