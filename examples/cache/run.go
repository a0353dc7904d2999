package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
)

type options struct {
	values  int
	rounds  int
	variant string
	usage   string
}

// run is the command. It returns 2 for wrong arguments, and 1 for later errors.
func run(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, o.usage)
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "cache:", err)
		return 2
	}
	if o.variant != "" {
		err = o.runOne(stdout)
	} else {
		err = o.runAll(ctx, stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "cache:", err)
		return 1
	}
	return 0
}

// parse reads arguments. An error is one line.
func parse(args []string) (options, error) {
	var o options
	var help strings.Builder
	flags := flag.NewFlagSet("cache", flag.ContinueOnError)
	flags.SetOutput(&help)
	flags.Usage = func() {
		fmt.Fprintln(&help, "usage: cache [flags]")
		flags.PrintDefaults()
	}
	flags.IntVar(&o.values, "n", 1_000_000, "put so many `values`")
	flags.IntVar(&o.rounds, "rounds", 5, "measure each variant so many `times`")
	flags.StringVar(&o.variant, "variant", "", "measure one `variant`, in this process, and print the figures as JSON: "+names())
	err := flags.Parse(args)
	o.usage = help.String()
	switch {
	case err != nil:
		return o, err
	case o.values < 1 || o.rounds < 1:
		return o, fmt.Errorf("-n %d, -rounds %d: each is at least 1", o.values, o.rounds)
	case flags.NArg() > 0:
		return o, fmt.Errorf("%q: there are only flags", flags.Arg(0))
	}
	if _, ok := find(o.variant); !ok && o.variant != "" {
		return o, fmt.Errorf("-variant %s: there are %s", o.variant, names())
	}
	return o, nil
}

func names() string {
	var all []string
	for _, v := range variants {
		all = append(all, v.name)
	}
	return strings.Join(all, ", ")
}

func find(name string) (variant, bool) {
	i := slices.IndexFunc(variants, func(v variant) bool { return v.name == name })
	if i < 0 {
		return variant{}, false
	}
	return variants[i], true
}

// runOne measures one variant.
func (o options) runOne(stdout io.Writer) error {
	v, _ := find(o.variant)
	m, err := v.measure(o.values)
	if err != nil {
		return err
	}
	return json.NewEncoder(stdout).Encode(m)
}

// runAll measures each variant in a process of its own, in turns, and prints the
// medians.
func (o options) runAll(ctx context.Context, stdout io.Writer) error {
	found := map[string][]measurement{}
	for range o.rounds {
		for _, v := range variants {
			m, err := o.child(ctx, v)
			if err != nil {
				return fmt.Errorf("%s: %w", v.name, err)
			}
			found[v.name] = append(found[v.name], m)
		}
	}
	fmt.Fprintf(stdout, "%d values of %d to %d bytes; medians, and least to most, of %d rounds\n", o.values, sizeLeast, sizeMost, o.rounds)
	for _, t := range tables {
		w := tabwriter.NewWriter(stdout, 0, 0, 3, ' ', tabwriter.AlignRight)
		fmt.Fprintf(w, "\n%s\t", t.title)
		for _, name := range t.variants {
			v, _ := find(name)
			fmt.Fprintf(w, "%s\t", v.title)
		}
		fmt.Fprintln(w)
		for _, r := range t.rows {
			fmt.Fprintf(w, "%s\t", r.title)
			for _, name := range t.variants {
				fmt.Fprintf(w, "%s\t", r.summary(found[name]))
			}
			fmt.Fprintln(w)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// child measures one variant in a process of its own.
func (o options) child(ctx context.Context, v variant) (measurement, error) {
	self, err := os.Executable()
	if err != nil {
		return measurement{}, err
	}
	cmd := exec.CommandContext(ctx, self, "-variant="+v.name, fmt.Sprintf("-n=%d", o.values))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		first, _, _ := strings.Cut(stderr.String(), "\n")
		return measurement{}, fmt.Errorf("%w: %s", err, first)
	}
	var m measurement
	err = json.Unmarshal(stdout.Bytes(), &m)
	return m, err
}

// A table is a part of what the command prints.
type table struct {
	title    string
	variants []string
	rows     []row
}

// A row is one figure of each variant.
type row struct {
	title string
	value func(measurement) float64
}

var tables = []table{
	{"a map, and the cache", []string{"map", "cache"}, []row{
		{"one collection, ms", func(m measurement) float64 { return m.Collection / 1e6 }},
		{"processor time of it, ms", func(m measurement) float64 { return m.CollectionCPU / 1e6 }},
		{"put a new value, ns", func(m measurement) float64 { return m.Put }},
		{"processor time of it, ns", func(m measurement) float64 { return m.PutCPU }},
		{"replace a value, ns", func(m measurement) float64 { return m.Replace }},
		{"processor time of it, ns", func(m measurement) float64 { return m.ReplaceCPU }},
		{"get a copy, ns", func(m measurement) float64 { return m.Get }},
		{"processor time of it, ns", func(m measurement) float64 { return m.GetCPU }},
		{"collections meanwhile", func(m measurement) float64 { return m.Collections }},
		{"peak resident memory, MB", func(m measurement) float64 { return m.Peak / 1e6 }},
		{"Go heap, live, MB", func(m measurement) float64 { return m.Live / 1e6 }},
	}},
	{"what makes room", []string{"budget", "nil"}, []row{
		{"failed Mallocs", func(m measurement) float64 { return m.Failed }},
		{"put, ns", func(m measurement) float64 { return m.Put }},
		{"processor time of it, ns", func(m measurement) float64 { return m.PutCPU }},
		{"values in the end", func(m measurement) float64 { return m.Values }},
		{"their bytes, of the limit", func(m measurement) float64 { return m.Full }},
	}},
}

// summary returns the median of some measurements, with the least and the most.
func (r row) summary(all []measurement) string {
	var values []float64
	for _, m := range all {
		values = append(values, r.value(m))
	}
	slices.SortFunc(values, cmp.Compare[float64])
	median := (values[(len(values)-1)/2] + values[len(values)/2]) / 2
	if len(values) == 1 || values[0] == values[len(values)-1] {
		return number(median)
	}
	return fmt.Sprintf("%s (%s to %s)", number(median), number(values[0]), number(values[len(values)-1]))
}

// number formats three digits, or all of an integer.
func number(f float64) string {
	switch {
	case f == 0:
		return "0"
	case f < 10:
		return fmt.Sprintf("%.2f", f)
	case f < 100:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.0f", f)
}
