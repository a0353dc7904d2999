package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A table has the fields of each line of a file, by their names.
type table []map[string]string

func readTable(name string) (table, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	names := strings.Split(lines[0], "\t")
	var t table
	for i, line := range lines[1:] {
		fields := strings.Split(line, "\t")
		if len(fields) != len(names) {
			return nil, fmt.Errorf("%s:%d: %d fields, want %d", name, i+2, len(fields), len(names))
		}
		row := map[string]string{}
		for j, f := range fields {
			row[names[j]] = f
		}
		if row["places"] == "" {
			t = append(t, row)
		}
		for place := range strings.FieldsSeq(row["places"]) { // a row for each
			one := maps.Clone(row)
			one["place"] = place
			t = append(t, one)
		}
	}
	return t, nil
}

// figures returns the tables of lab/survey/README.md, in Markdown, from the files of a run: modules.tsv and
// findings.tsv, and from read.tsv, which a person has written.
func figures(dir string) (string, error) {
	var tables [3]table
	for i, name := range []string{"modules.tsv", "findings.tsv", "read.tsv"} {
		var err error
		if tables[i], err = readTable(filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	modules, findings, read := tables[0], tables[1], tables[2]
	return modulesFigures(modules) + "\n" + kindFigures(findings) + "\n" + readFigures(findings, read) + "\n" + sentences(modules, findings, read), nil
}

// modulesFigures says how many modules were looked at, and why others were not.
func modulesFigures(modules table) string {
	skipped, looked, packages, lines := map[string]int{}, 0, 0, 0
	for _, m := range modules {
		if why := m["skipped"]; why != "" {
			why, _, _ = strings.Cut(why, ":")
			skipped[why]++
			continue
		}
		looked++
		packages += number(m["packages"])
		lines += number(m["lines"])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| modules | |\n| --- | --- |\n| in the list | %d |\n| looked at | %d, with %d packages and %s lines in files with cgo |\n", len(modules), looked, packages, thousands(lines))
	for _, why := range byCount(skipped) {
		fmt.Fprintf(&b, "| skipped: %s | %d |\n", why, skipped[why])
	}
	return b.String()
}

const allKinds = "all kinds"

// kindFigures counts the findings of each kind, and the modules that have them. A finding counts as one of
// the library if no folder on the way to it is for examples, commands or tests.
func kindFigures(findings table) string {
	type key struct{ analyzer, kind string }
	counts, library, kinds := map[key]int{}, map[key]int{}, map[string]map[string]bool{}
	modules := map[key]map[string]bool{}
	for _, f := range findings {
		k := key{f["analyzer"], f["kind"]}
		if kinds[k.analyzer] == nil {
			kinds[k.analyzer] = map[string]bool{}
		}
		kinds[k.analyzer][k.kind] = true
		for _, k := range []key{k, {k.analyzer, allKinds}} {
			counts[k]++
			if ofLibrary(f["place"]) {
				library[k]++
				if modules[k] == nil {
					modules[k] = map[string]bool{}
				}
				modules[k][f["module"]] = true
			}
		}
	}
	var keys []key
	for k := range counts {
		if k.kind != allKinds || len(kinds[k.analyzer]) > 1 {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(strings.Compare(a.analyzer, b.analyzer), counts[b]-counts[a], strings.Compare(a.kind, b.kind))
	})
	var b strings.Builder
	b.WriteString("| analyzer | kind | findings | of these in libraries | of so many modules |\n| --- | --- | --- | --- | --- |\n")
	for _, k := range keys {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %d |\n", k.analyzer, k.kind, thousands(counts[k]), thousands(library[k]), len(modules[k]))
	}
	return b.String()
}

// ofLibrary reports whether a place is in code that users of a module call.
func ofLibrary(place string) bool {
	folders := strings.Split(place, "/")
	return !slices.ContainsFunc(folders[:len(folders)-1], func(folder string) bool {
		folder = strings.TrimLeft(strings.ToLower(folder), "_")
		return folder == "cmd" || slices.ContainsFunc([]string{"example", "demo", "test"}, func(s string) bool {
			return strings.HasPrefix(folder, s) || strings.HasSuffix(folder, "_"+s) || strings.HasSuffix(folder, "-"+s)
		})
	})
}

// drawn has the words for findings that were drawn at random: once, and again when the analyzers had been mended by that.
var drawn = map[string]string{"yes": "as drawn", "again": "drawn again"}

// readFigures counts the verdicts about findings that were drawn at random.
func readFigures(findings, read table) string {
	place := func(f map[string]string) string {
		return f["module"] + " " + f["analyzer"] + " " + f["place"]
	}
	now := map[string]bool{}
	for _, f := range findings {
		now[place(f)] = true
	}
	type verdicts struct{ all, right, harmless, wrong, stillRight, stillHarmless, stillWrong int }
	counts := map[string]*verdicts{}
	var names []string
	for _, r := range read {
		name := r["analyzer"] + ", " + drawn[r["drawn"]]
		if drawn[r["drawn"]] == "" {
			continue
		}
		v := counts[name]
		if v == nil {
			v = new(verdicts)
			counts[name] = v
			names = append(names, name)
		}
		v.all++
		still := 0
		if now[place(r)] {
			still = 1
		}
		switch r["verdict"] {
		case "true":
			v.right++
			v.stillRight += still
		case "harmless":
			v.harmless++
			v.stillHarmless += still
		case "false":
			v.wrong++
			v.stillWrong += still
		}
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString("| analyzer | read | true | true, and harmless | false | precision |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, name := range names {
		v := counts[name]
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %s |\n", name, v.all, v.right, v.harmless, v.wrong, share(v.right+v.harmless, v.all))
		if all := v.stillRight + v.stillHarmless + v.stillWrong; all < v.all {
			name, _, _ := strings.Cut(name, ",")
			fmt.Fprintf(&b, "| %s, still reported | %d | %d | %d | %d | %s |\n", name, all, v.stillRight, v.stillHarmless, v.stillWrong, share(v.stillRight+v.stillHarmless, all))
		}
	}
	return b.String()
}

// sentences says in how many modules something leaks, and how often a string does that nothing has.
func sentences(modules, findings, read table) string {
	looked, all, inline, lost := 0, 0, 0, 0
	for _, m := range modules {
		if m["skipped"] == "" {
			looked++
			all += number(m["strings"])
			inline += number(m["inline"])
			lost += number(m["lost"])
		}
	}
	leaks := func(t table, keep func(row map[string]string) bool) int {
		of := map[string]bool{}
		for _, row := range t {
			if row["analyzer"] == "cfree" && ofLibrary(row["place"]) && keep(row) {
				of[row["module"]] = true
			}
		}
		return len(of)
	}
	return fmt.Sprintf("%d of the %d modules have a finding of cfree in what their users call. In %d modules at least one of these findings was read, and is true.\n",
		leaks(findings, func(map[string]string) bool { return true }), looked, leaks(read, func(row map[string]string) bool { return row["verdict"] == "true" })) +
		fmt.Sprintf("C.CString is called in %s places. In %s of them a call of C is around it, so that nothing in Go has the string; %d are reported.\n", thousands(all), thousands(inline), lost)
}

func share(part, all int) string {
	if all == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", float64(part)/float64(all))
}

func number(text string) int {
	n, _ := strconv.Atoi(text) // this program has written it
	return n
}

// thousands writes a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// byCount returns the keys, those with the largest counts first.
func byCount(counts map[string]int) []string {
	var keys []string
	for k := range counts {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	return keys
}
