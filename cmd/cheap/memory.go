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

	"github.com/cheapgo/cheap/cmd/cheap/internal/peers"
	"github.com/cheapgo/cheap/cmd/cheap/internal/replay"
)

// memoryCommandName is a command for this program alone: the child process that
// replays one trace on one allocator and looks at what is resident.
const memoryCommandName = "replay-memory"

// A memoryReply is what the child prints.
type memoryReply struct {
	Memory      replay.Memory
	Unsupported string `json:",omitempty"` // why nothing could be measured
}

// memoryCommand is the child: its arguments are an allocator and a trace.
func memoryCommand(args []string, stdout io.Writer) error {
	if len(args) != 2 {
		return usagef("it takes an allocator and a trace; cheap replay calls it")
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

// errNotMeasured passes on why the child could not measure.
type errNotMeasured struct{ reason string }

func (e errNotMeasured) Error() string { return e.reason }
func (e errNotMeasured) Unwrap() error { return errors.ErrUnsupported }

// measureMemory runs the child. The error is errors.ErrUnsupported where the
// system does not tell what is resident.
func measureMemory(ctx context.Context, info peers.Info, src source) (replay.Memory, error) {
	self, err := os.Executable()
	if err != nil {
		return replay.Memory{}, err
	}
	var stdout, stderr bytes.Buffer
	child := exec.CommandContext(ctx, self, memoryCommandName, info.Name, src.arg)
	child.Stdout, child.Stderr = &stdout, &stderr
	err = child.Run()
	if ctx.Err() != nil {
		return replay.Memory{}, ctx.Err()
	}
	if err != nil {
		return replay.Memory{}, fmt.Errorf("process that measures the memory of %s: %w: %s", info.Name, err, strings.TrimSpace(stderr.String()))
	}
	var reply memoryReply
	if err := json.Unmarshal(stdout.Bytes(), &reply); err != nil {
		return replay.Memory{}, fmt.Errorf("process that measures the memory of %s: %w", info.Name, err)
	}
	if reply.Unsupported != "" {
		return replay.Memory{}, errNotMeasured{reply.Unsupported}
	}
	return reply.Memory, nil
}
