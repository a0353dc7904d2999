package measure

import (
	"context"
	"errors"
	"slices"
	"time"
)

// A unit is one measurement: a row on a number of processors.
type unit struct {
	table *Table
	row   *Row
	procs int
	clock clock

	work     Work
	n        int   // operations in a round
	warm     int   // operations before it, off the clock
	ten      int   // operations that ten collections need, 0 if the row's rounds are not long
	resident int64 // bytes that were resident in the round before the first, 0 if unknown
	samples  []sample
	tried    sample        // of the calibration, if the row has an N
	took     time.Duration // the last round, with what is done before it
	err      error         // why there are no more samples
}

// failed reports whether the unit has an error, and so is missing in the report. A
// unit that was interrupted keeps its samples.
func (u *unit) failed() bool {
	return u.err != nil && !errors.Is(u.err, context.Canceled) && !errors.Is(u.err, errNoTime)
}

// unsupported reports whether the unit is missing because this machine does not have
// what it measures.
func (u *unit) unsupported() bool { return errors.Is(u.err, errors.ErrUnsupported) }

// measured reports whether the unit is in the report.
func (u *unit) measured() bool { return len(u.samples) > 0 && !u.failed() }

func (u *unit) String() string { return u.table.Name + "/" + u.row.Name }

// weight is the unit's part of the time.
func (u *unit) weight() float64 {
	if u.row.Weight > 0 {
		return u.row.Weight
	}
	if u.table.Weight > 0 {
		return u.table.Weight
	}
	return 1
}

// A group is units that take turns.
type group []*unit

func (g group) weight() float64 {
	sum := 0.0
	for _, u := range g {
		sum += u.weight()
	}
	return sum
}

// first is 1 if one of the units is to be measured before the others, else 0.
func (g group) first(o *Options) int {
	if o.First != nil && slices.ContainsFunc(g, func(u *unit) bool { return o.First(u.table.Name, u.row.Name) }) {
		return 1
	}
	return 0
}

// alive returns the units that have not failed.
func (g group) alive() group {
	return slices.DeleteFunc(slices.Clone(g), func(u *unit) bool { return u.err != nil })
}

// turns returns the group in the order of a round. The first unit changes from
// round to round, and so do the neighbours.
func (g group) turns(round int) group {
	if len(g) == 0 {
		return nil
	}
	k := round % len(g)
	turns := slices.Concat(g[k:], g[:k])
	if round%2 == 1 {
		slices.Reverse(turns)
	}
	return turns
}

// units returns the units to measure, in the order of the report.
func units(tables []Table, o *Options) []*unit {
	var all []*unit
	for i := range tables {
		t := &tables[i]
		for j := range t.Rows {
			row := &t.Rows[j]
			if o.Keep != nil && !o.Keep(t.Name, row.Name) {
				continue
			}
			for _, procs := range procsOf(row, o) {
				all = append(all, &unit{table: t, row: row, procs: procs, clock: o.clock})
			}
		}
	}
	return all
}

// procsOf returns the numbers of processors on which the row is measured.
func procsOf(row *Row, o *Options) []int {
	switch {
	case o.Procs != nil:
		return o.Procs
	case row.Procs != nil:
		return row.Procs
	}
	return []int{1}
}

// groups divides units into groups. Units of a table with the same group are
// together. A row without a group is in a group with itself on other processors.
func groups(all []*unit) []group {
	type key struct{ table, group, row string }
	index := make(map[key]int)
	var out []group
	for _, u := range all {
		k := key{table: u.table.Name, group: u.row.Group}
		if k.group == "" {
			k.row = u.row.Name
		}
		i, ok := index[k]
		if !ok {
			i = len(out)
			index[k] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], u)
	}
	return out
}
