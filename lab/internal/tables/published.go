package tables

import "github.com/cheapgo/cheap/internal/page/result"

// figure is the figure of a source, for any number of processors.
func figure(source result.Source, ns float64) func(int) []result.Published {
	return func(int) []result.Published { return []result.Published{{Ns: ns, Source: source.Name}} }
}
