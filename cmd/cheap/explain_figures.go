package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/cheapgo/cheap/cmd/cheap/internal/explain"
	"github.com/cheapgo/cheap/cmd/cheap/internal/explain/ways"
	"github.com/cheapgo/cheap/cmd/cheap/internal/present"
)

// readFigures reads a report of `cheap bench`.
func readFigures(file string) (explain.Figures, error) {
	const help = "name a file that cheap bench -format json has written"
	f, err := os.Open(file)
	if err != nil {
		return explain.Figures{}, usagef("-figures: %v; %s", err, help)
	}
	defer f.Close()
	figures, err := figuresOf(f, file)
	if err != nil {
		return explain.Figures{}, usagef("-figures: %s: %v; %s", file, oneLine(err), help)
	}
	return figures, nil
}

func figuresOf(r io.Reader, from string) (explain.Figures, error) {
	report, err := present.ReadJSON(r)
	if err != nil {
		return explain.Figures{}, err
	}
	figures := explain.Figures{Ns: map[string]float64{}, From: from}
	for _, row := range report.Rows {
		if row.Procs == 1 {
			figures.Ns[row.Table+"/"+row.Row] = row.NsPerOp
		}
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
