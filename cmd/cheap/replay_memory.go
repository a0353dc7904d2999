package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/cheapgo/cheap/internal/replay"
	"github.com/cheapgo/cheap/internal/replay/peers"
	"github.com/cheapgo/cheap/internal/replay/preload"
	"github.com/cheapgo/cheap/internal/result"
)

// memoryCommandName is a command that only this program calls: the child process
// that replays one trace on one allocator and measures what is resident.
const memoryCommandName = "replay-memory"

// A memoryReply is what the child prints.
type memoryReply struct {
	Memory      result.Memory
	Unsupported string `json:",omitempty"` // why it was not measured
}

// memoryCommand is the child: its arguments are an allocator, a trace, and, unless that
// is "", the library that has been preloaded.
func memoryCommand(args []string, stdout io.Writer) error {
	if len(args) != 3 {
		return usagef("the arguments are an allocator, a trace and a library; only cheap replay runs this command")
	}
	if library := args[2]; library != "" {
		if err := preload.Check(library); err != nil {
			return err
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
	var reply memoryReply
	reply.Memory, err = replay.MeasureMemory(tr, info)
	if errors.Is(err, errors.ErrUnsupported) {
		reply.Unsupported = err.Error()
	} else if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(reply)
}

// errNotMeasured says why the child did not measure.
type errNotMeasured struct{ reason string }

func (e errNotMeasured) Error() string { return e.reason }
func (e errNotMeasured) Unwrap() error { return errors.ErrUnsupported }

// measureMemory runs the child, with a library preloaded unless it is "". The error is
// errors.ErrUnsupported where the system does not report resident memory.
func measureMemory(ctx context.Context, allocator string, src source, library string) (*result.Memory, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var stdout, stderr bytes.Buffer
	child := exec.CommandContext(ctx, self, memoryCommandName, allocator, src.arg, library)
	if library != "" {
		child.Env = append(os.Environ(), preload.Library{Path: library}.Env())
		allocator = library // in errors
	}
	child.Stdout, child.Stderr = &stdout, &stderr
	err = child.Run()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("process that measures the memory of %s: %w: %s", allocator, err, strings.TrimSpace(stderr.String()))
	}
	var reply memoryReply
	if err := json.Unmarshal(stdout.Bytes(), &reply); err != nil {
		return nil, fmt.Errorf("process that measures the memory of %s: %w", allocator, err)
	}
	if reply.Unsupported != "" {
		return nil, errNotMeasured{reply.Unsupported}
	}
	return &reply.Memory, nil
}
