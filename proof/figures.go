package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cheapgo/cheap/internal/page/figure"
	"github.com/cheapgo/cheap/internal/page/result"
)

// figures is what a run has measured, and NAME/figures.json holds.
type figures struct {
	Modules []string       `json:"modules"` // with versions
	Machine result.Machine `json:"machine"`
	Tests   []tested       `json:"tests"`
	Load    []loaded       `json:"load"`
}

func newFigures(p *project) *figures {
	f := &figures{Machine: result.ThisMachine("100", "")}
	for _, m := range p.modules {
		f.Modules = append(f.Modules, m.path+" "+m.version)
	}
	return f
}

// tables writes the figures in Markdown, as the page of a project has them.
func (f *figures) tables(p *project) string {
	var b strings.Builder
	if len(f.Tests) > 0 {
		b.WriteString("| tests | pass in both ways | pass only without our files | fail without our files |\n| --- | --- | --- | --- |\n")
		for _, t := range f.Tests {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", t.Suite, figure.Thousands(t.Both), list(t.Lost), list(t.Failed))
		}
		for _, s := range p.suites {
			if s.why != "" {
				fmt.Fprintf(&b, "\n%s: %s\n", s.name, s.why)
			}
		}
		b.WriteString("\n")
	}
	if len(f.Load) > 0 {
		b.WriteString("| the load |")
		for _, c := range p.columns {
			b.WriteString(" " + c.title + " |")
		}
		b.WriteString("\n|" + strings.Repeat(" --- |", len(p.columns)+1) + "\n")
		for _, l := range f.Load {
			b.WriteString("| " + l.Way + " |")
			for _, c := range p.columns {
				b.WriteString(" " + c.cell(l.of(c.key)) + " |")
			}
			b.WriteString("\n")
		}
		date, _, _ := strings.Cut(f.Machine.Date, "T")
		fmt.Fprintf(&b, "\nMedians of %s in turn, with the least and the greatest: %s, %s, %s/%s, %s, %s.\n",
			figure.Plural(len(f.Load[0].Values), "round"), f.Machine.CPU, figure.Plural(f.Machine.Cores, "core"), f.Machine.OS, f.Machine.Arch, f.Machine.Go, date)
	}
	return b.String()
}

// list writes names of tests. A package is named if none of its tests is.
func list(names []string) string {
	var short []string
	for _, name := range names {
		pkg, test, _ := strings.Cut(name, ":")
		switch {
		case test != "":
			short = append(short, test)
		case !slices.ContainsFunc(names, func(n string) bool { return len(n) > len(name) && strings.HasPrefix(n, name) }):
			short = append(short, "package "+pkg)
		}
	}
	if len(short) == 0 {
		return "none"
	}
	return strings.Join(short, ", ")
}

// of returns the values of a key, in order.
func (l *loaded) of(key string) (all []float64) {
	for _, v := range l.Values {
		all = append(all, v[key])
	}
	slices.Sort(all)
	return all
}

// median returns the middle one of values in order.
func median(values []float64) float64 {
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}

// cell writes values in order.
func (c *column) cell(values []float64) string {
	write := func(x float64) string { return strconv.FormatFloat(x, 'f', c.digits, 64) }
	text, least, greatest := write(median(values)), write(values[0]), write(values[len(values)-1])
	if c.unit != "" {
		text += " " + c.unit
	}
	if least == greatest {
		return text
	}
	return text + " (" + least + "–" + greatest + ")"
}

// verdict returns an error if tests were lost, or a bar is not met.
func (f *figures) verdict(p *project) error {
	var all []error
	for _, t := range f.Tests {
		if len(t.Lost) > 0 {
			all = append(all, fmt.Errorf("pass only without our files: %s", strings.Join(t.Lost, ", ")))
		}
	}
	if len(f.Load) > 0 {
		for _, b := range p.bars {
			if ratio := f.median(b.way, b.key) / f.median(b.against, b.key); !(ratio <= b.most) {
				all = append(all, fmt.Errorf("%s: %s is %.2f of that %s, and may be %.2f", b.way, b.key, ratio, b.against, b.most))
			}
		}
	}
	return errors.Join(all...)
}

// median returns the median of a value in a way.
func (f *figures) median(way, key string) float64 {
	i := slices.IndexFunc(f.Load, func(l loaded) bool { return l.Way == way })
	return median(f.Load[i].of(key))
}

// read returns the figures that are stored.
func read(p *project) (*figures, error) {
	f := new(figures)
	text, err := os.ReadFile(filepath.Join(p.name, "figures.json"))
	if err != nil {
		return nil, err
	}
	return f, json.Unmarshal(text, f)
}

// store writes the figures to the folder of the project. What was not measured stays as it was.
func (f *figures) store(p *project) error {
	if old, err := read(p); err == nil && slices.Equal(old.Modules, f.Modules) {
		if f.Tests == nil {
			f.Tests = old.Tests
		}
		if f.Load == nil {
			f.Load, f.Machine = old.Load, old.Machine
		}
	}
	text, err := json.MarshalIndent(f, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(p.name, "figures.json"), append(text, '\n'), 0o666)
}
