package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
)

// A loaded is what the load has printed in a way: an object for each round.
type loaded struct {
	Way    string               `json:"way"`
	Values []map[string]float64 `json:"values"`
}

// load builds the load in each way, and runs them in turn.
func (c *checkout) load(ctx context.Context, f *figures, rounds int) error {
	for i := range c.ways {
		w := &c.ways[i]
		fmt.Fprintf(c.progress, "build of the load, %s\n", w.name)
		build, err := c.build(ctx, w, false)
		if err != nil {
			return err
		}
		args := slices.Concat([]string{"build", "-o", c.binary(i)}, build, []string{"./proofload"})
		if _, err := c.output(c.goCommand(ctx, c.dirs[0], w.env, args...)); err != nil {
			return err
		}
		f.Load = append(f.Load, loaded{Way: w.name})
	}
	for round := range rounds {
		for i := range c.ways {
			fmt.Fprintf(c.progress, "load, round %d of %d, %s\n", round+1, rounds, c.ways[i].name)
			values, err := c.once(ctx, i)
			if err != nil {
				return err
			}
			f.Load[i].Values = append(f.Load[i].Values, values)
		}
	}
	return nil
}

func (c *checkout) binary(way int) string { return filepath.Join(c.root, "load"+strconv.Itoa(way)) }

// once runs a load.
func (c *checkout) once(ctx context.Context, way int) (map[string]float64, error) {
	words := append(c.limited(), c.binary(way))
	cmd := c.command(ctx, c.root, c.ways[way].env, append(words, c.loadArgs...)...)
	out, err := c.output(cmd)
	if err != nil {
		return nil, err
	}
	values := map[string]float64{}
	if err := json.Unmarshal(out, &values); err != nil {
		return nil, fmt.Errorf("the load printed %q: %w", out, err)
	}
	values[processor] = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	for _, column := range c.columns {
		if _, ok := values[column.key]; !ok {
			return nil, fmt.Errorf("the load printed no %s, only %v", column.key, slices.Sorted(maps.Keys(values)))
		}
	}
	return values, nil
}
