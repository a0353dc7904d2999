package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// analyzers are the columns of modules.tsv: those that look at any program with cgo.
var analyzers = []string{"cfree", "keepalive", "perobject", "callbackcycle", "cleanupcycle"}

func modulesHead() string {
	return "module\tskipped\tpackages\tbroken\tlines\tstrings\tinline\tlost\t" + strings.Join(analyzers, "\t") + "\n"
}

const findingsHead = "module\tanalyzer\tkind\tplaces\n"

// A result is what the two files have of a module: lines with their breaks.
type result struct{ row, findings string }

// results are by the names of the modules.
type results map[string]result

func (m *module) result() result {
	places := map[string]string{}
	for _, f := range m.findings {
		places[m.name+"\t"+f.Analyzer+"\t"+f.Kind+"\t"] += f.Place + " "
	}
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(places)) {
		fmt.Fprintln(&b, kind+strings.TrimSuffix(places[kind], " "))
	}
	return result{m.row() + "\n", b.String()}
}

// row returns the line of a module in modules.tsv.
func (m *module) row() string {
	fields := []string{m.name, m.skipped, fmt.Sprint(m.packages), fmt.Sprint(m.broken), fmt.Sprint(m.lines), fmt.Sprint(m.strings.all), fmt.Sprint(m.strings.inline), fmt.Sprint(m.lost)}
	for _, name := range analyzers {
		n := 0
		for _, f := range m.findings {
			if f.Analyzer == name {
				n++
			}
		}
		fields = append(fields, fmt.Sprint(n))
	}
	return strings.Join(fields, "\t")
}

// readResults reads the files of a folder, which may have none.
func readResults(dir string) (results, error) {
	r := results{}
	for _, name := range []string{"modules.tsv", "findings.tsv"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			module, _, _ := strings.Cut(line, "\t")
			one := r[module]
			if name == "modules.tsv" {
				one.row = line
			} else {
				one.findings += line
			}
			r[module] = one
		}
	}
	return r, nil
}

// write writes both files, with the modules in an order.
func (r results) write(dir string, order []string) error {
	rows, findings := modulesHead(), findingsHead
	for _, name := range order {
		rows += r[name].row
		findings += r[name].findings
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "modules.tsv"), []byte(rows), 0o666),
		os.WriteFile(filepath.Join(dir, "findings.tsv"), []byte(findings), 0o666),
	)
}

// compare returns an error with the lines that stored results have and others do not, and the reverse.
func (r results) compare(found results, order []string) error {
	var b strings.Builder
	for _, name := range order {
		missing(&b, "-", r[name], found[name])
		missing(&b, "+", found[name], r[name])
	}
	if b.Len() == 0 {
		return nil
	}
	return fmt.Errorf("something else is found than before:\n%s", b.String())
}

// missing writes the lines of a result that another does not have.
func missing(b *strings.Builder, sign string, of, from result) {
	lines := map[string]int{}
	for line := range strings.Lines(from.row + from.findings) {
		lines[line]++
	}
	for line := range strings.Lines(of.row + of.findings) {
		if lines[line]--; lines[line] < 0 {
			b.WriteString(sign + line)
		}
	}
}
