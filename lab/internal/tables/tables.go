// Package tables holds the tables of the program lab.
package tables

import "github.com/cheapgo/cheap/lab/internal/measure"

// All returns the tables in the order of the report.
func All() []measure.Table {
	var all []measure.Table
	for _, table := range []func() measure.Table{
		Calls,
		Lists,
		Scaling,
		Release,
		Size,
		Allocators,
		Blocks,
		Live,
		Survivors,
		Resident,
		Server,
		Strings,
		Traces,
		Workloads,
		Patterns,
		Tail,
		Arenas,
	} {
		all = append(all, table())
	}
	return promiseTo(all)
}
