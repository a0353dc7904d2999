package main

var geos = project{
	name: "geos",
	modules: []module{{
		path: "github.com/twpayne/go-geos", version: "v0.20.2", sum: "h1:Ll3j/lpjHOX0b0ZNKG78+THoLTmDU5Yt2W25VB2gFKg=",
	}},
	ways: []way{
		{name: "runtime.AddCleanup, as it is"},
		{name: "own", tree: "_tree"},
	},
	suites: []suite{{
		name:     "all",
		packages: []string{".", "./geojson", "./geometry"},
		args:     []string{"-skip=^(TestPolygonize|TestPolygonizeMultiContext|TestGeometryMethods|TestGeomPolygonizeFull|TestMakeValid|TestFeatureCollection|TestNewGeometry)$"},
		why: "without seven tests that print two geometries and compare the texts. The owners in them are never equal: " +
			"TestPolygonize, TestPolygonizeMultiContext, TestGeometryMethods, TestGeomPolygonizeFull, TestMakeValid, TestFeatureCollection, TestNewGeometry.",
	}},
	columns: []column{
		{key: "points", title: "a point", unit: "ns"},
		{key: "wkt", title: "a polygon from WKT", unit: "ns"},
		{key: "buffers", title: "the buffer of a point", unit: "ns"},
		{key: "resident", title: "peak resident", unit: "MB"},
	},
	bars: []bar{
		{key: "points", way: "own", against: "runtime.AddCleanup, as it is", most: 0.55},
		{key: "wkt", way: "own", against: "runtime.AddCleanup, as it is", most: 0.85},
		{key: "buffers", way: "own", against: "runtime.AddCleanup, as it is", most: 1},
	},
}
