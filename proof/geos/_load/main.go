// Proofload makes geometries and forgets them.
package main

import "github.com/twpayne/go-geos"

func main() {
	c := geos.NewContext()
	values := map[string]float64{}
	measure := func(name string, n int, f func()) {
		begin := used()
		for range n {
			f()
		}
		values[name] = (used() - begin) / float64(n)
	}
	measure("points", 1_000_000, func() { c.NewPointFromXY(1, 2) })
	measure("wkt", 300_000, func() {
		_, err := c.NewGeomFromWKT("POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0))")
		check(err)
	})
	point := c.NewPointFromXY(1, 2)
	measure("buffers", 100_000, func() { point.Buffer(10, 8) })
	report(values)
}
