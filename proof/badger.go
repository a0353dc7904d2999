package main

var badger = project{
	name: "badger",
	modules: []module{
		{path: "github.com/dgraph-io/badger/v4", version: "v4.8.0", sum: "h1:JYph1ChBijCw8SLeybvPINizbDKWZ5n/GYbz2yhN/bs=", folder: "badger"},
		{path: "github.com/dgraph-io/ristretto/v2", version: "v2.3.0", sum: "h1:qTQ38m7oIyd4GAed/QkUZyPFNMnvVWyazGXRwvOt5zk=", folder: "ristretto"},
	},
	ways: []way{
		{name: "without jemalloc", env: []string{"CGO_ENABLED=0"}},
		{name: "on a Heap", tree: "_tree", env: []string{"CGO_ENABLED=0"}},
		{
			name: "with jemalloc", args: []string{"-tags=jemalloc"},
			env: []string{"CGO_ENABLED=1", "CGO_CFLAGS=-DJEMALLOC_NO_DEMANGLE", "CC=$FOLDER/_jemalloc/cc", "MALLOC_CONF=background_thread:true,metadata_thp:auto"},
		},
	},
	suites: []suite{
		{name: "ristretto", module: 1, packages: []string{".", "./z/..."}, args: []string{"-timeout=20m"}},
		{
			name: "badger", packages: []string{"./..."}, args: []string{"-timeout=20m", "-skip=^(TestCloseDBWhileReading|TestStreamWriterIncremental)$"},
			why: "without two tests. TestCloseDBWhileReading hangs now and then as it is: a reader waits for good in a database that is closed. " +
				"TestStreamWriterIncremental frees its second buffer twice, and the first one never; on a Heap it panics.",
		},
	},
	mapsFiles: true,
	columns: []column{
		{key: "peak", title: "peak of memory", unit: "MB"},
		{key: "mean", title: "mean", unit: "MB"},
		{key: "collections", title: "collections"},
		{key: processor, title: "processor time", unit: "s", digits: 1},
		{key: "read99", title: "p99 of reads", unit: "µs"},
		{key: "write99", title: "p99 of writes", unit: "µs"},
	},
	bars: []bar{{key: "mean", way: "on a Heap", against: "without jemalloc", most: 0.65}, {key: "peak", way: "on a Heap", against: "without jemalloc", most: 0.85}},
}
