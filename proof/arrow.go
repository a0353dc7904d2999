package main

var arrow = project{
	name: "arrow",
	modules: []module{{
		path: "github.com/apache/arrow-go/v18", version: "v18.8.0", sum: "h1:BLOzbPv7bxMPgXPacAg6HQjnxupYsZzC4tf+FkqPU/M=",
	}},
	ways: []way{
		{name: "Go memory, as it is"},
		{name: "on a Heap", tree: "_tree"},
		{name: "mallocator", args: []string{"-tags=mallocator"}},
	},
	suites: []suite{
		{
			name:     "memory, array, ipc",
			packages: []string{"./arrow/memory", "./arrow/array", "./arrow/ipc"},
			args:     []string{"-timeout=20m", "-skip=^TestConcatenate$"},
			why:      "without TestConcatenate, which reads buffers after their release. With mallocator it fails as well.",
		},
	},
	columns: []column{
		{key: "aligned", title: "large buffers that begin at a page of 16 KiB", unit: "%"},
		{key: "resident", title: "peak resident", unit: "MB"},
		{key: "collections", title: "collections"},
		{key: processor, title: "processor time", unit: "s", digits: 2},
	},
	bars: []bar{{key: "resident", way: "on a Heap", against: "Go memory, as it is", most: 1}},
}
