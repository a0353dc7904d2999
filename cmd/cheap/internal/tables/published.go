package tables

import "github.com/cheapgo/cheap/cmd/cheap/internal/result"

// figure is what a source says, whatever the number of processors.
func figure(source result.Source, ns float64) func(int) []result.Published {
	return func(int) []result.Published { return []result.Published{{Ns: ns, Source: source.Name}} }
}
