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

	"github.com/cheapgo/cheap/cmd/cheap/internal/explain"
	"github.com/cheapgo/cheap/cmd/cheap/internal/explain/ways"
)

// readFigures reads a report of the module lab.
func readFigures(file string) (explain.Figures, error) {
	figures := explain.Figures{Ns: map[string]float64{}, From: file}
	var rows []struct {
		Table, Row string
		Procs      int
		NsPerOp    float64 `json:"ns_per_op"`
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &rows)
	}
	for _, row := range rows {
		if row.Procs == 1 && row.Table != "" && row.NsPerOp > 0 {
			figures.Ns[row.Table+"/"+row.Row] = row.NsPerOp
		}
	}
	if err == nil && len(figures.Ns) == 0 {
		err = errors.New("it has no rows")
	}
	if err != nil {
		return explain.Figures{}, usagef("-figures: %s: %v; name a file that go run ./lab -format json has written", file, oneLine(err))
	}
	return figures, nil
}

// measure measures the figures of the advice, if it is asked for. If that fails, a note says why,
// and the stored ones are taken.
func (s *explainSettings) measure(ctx context.Context, progress *progress) (notes []string, err error) {
	if !s.bench {
		return nil, nil
	}
	progress.show("measuring what the advice compares")
	figures, err := runWays(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	} else if err != nil {
		return []string{fmt.Sprintf("the figures of the advice are not of this machine: %v", oneLine(err))}, nil
	}
	s.figures = figures
	return nil, nil
}

// How much `cheap explain -bench` measures: about four seconds. They are variables for tests.
var (
	waysObjects = 500_000
	waysRounds  = 5
)

// waysCommandName is a process of `cheap explain`.
const waysCommandName = "explain-ways"

// waysCommand prints nanoseconds by names of rows.
func waysCommand(ctx context.Context, stdout io.Writer) error {
	ns, err := ways.Measure(ctx, waysObjects, waysRounds)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(ns)
}

// runWays measures in a process whose Go heap has nothing else.
func runWays(ctx context.Context) (explain.Figures, error) {
	self, err := os.Executable()
	if err != nil {
		return explain.Figures{}, err
	}
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, self, waysCommandName)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return explain.Figures{}, fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	figures := explain.Figures{From: "measured on this machine"}
	return figures, json.Unmarshal(stdout.Bytes(), &figures.Ns)
}
