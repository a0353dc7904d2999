package main

var pebble = project{
	name: "pebble",
	modules: []module{{
		path: "github.com/cockroachdb/pebble/v2", version: "v2.1.7", sum: "h1:hFQnbsniSWg9BVcNKMuaUufYPiVXY6uJvaY9grbQ9+U=",
	}},
	ways: []way{
		{name: "without cgo", env: []string{"CGO_ENABLED=0"}},
		{name: "without cgo, on a Heap", tree: "_tree", env: []string{"CGO_ENABLED=0"}},
		{name: "without cgo, in pools", tree: "_pools", env: []string{"CGO_ENABLED=0"}},
		{name: "with cgo", env: []string{"CGO_ENABLED=1"}},
	},
	suites: []suite{
		{
			name:     "pebble, cache, arenaskl, sstable, objstorage",
			packages: []string{".", "./internal/cache", "./internal/manual", "./internal/arenaskl", "./sstable/...", "./metamorphic/...", "./objstorage/..."},
			args:     []string{"-timeout=20m", "-skip=^(TestSingularKVBlockRestartsOverflow|TestExceedingMaximumRestartOffset|TestMultipleKVBlockRestartsOverflow)$"},
			why:      "without three tests that take 24 GB of memory each.",
		},
		{
			name:     "metamorphic",
			packages: []string{"./internal/metamorphic"},
			args:     []string{"-timeout=20m"},
			program:  []string{"-seed=1"},
		},
	},
	columns: []column{
		{key: "resident", title: "peak resident", unit: "MB"},
		{key: "collections", title: "collections"},
		{key: processor, title: "processor time", unit: "s", digits: 1},
		{key: "read99", title: "p99 of reads", unit: "µs"},
		{key: "write99", title: "p99 of writes", unit: "µs"},
	},
	bars: []bar{{key: "resident", way: "without cgo, on a Heap", against: "without cgo", most: 0.75}},
}
