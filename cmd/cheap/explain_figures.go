package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"

	"github.com/cheapgo/cheap/cmd/cheap/internal/explain"
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
	figures, err := s.runBench(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	} else if err != nil {
		return []string{fmt.Sprintf("the figures of the advice are not of this machine: %v", oneLine(err))}, nil
	}
	s.figures = figures
	return nil, nil
}

// figureSettings are those of the cheap bench that measures figures. They are a variable for tests.
var figureSettings = []string{"-quick"}

func (s *explainSettings) runBench(ctx context.Context) (explain.Figures, error) {
	self, err := os.Executable()
	if err != nil {
		return explain.Figures{}, err
	}
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, self, slices.Concat([]string{"bench", "-run", explain.Stored.Rows(), "-format", "json"}, figureSettings)...)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return explain.Figures{}, fmt.Errorf("cheap bench: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return figuresOf(&stdout, "measured on this machine")
}
