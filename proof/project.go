package main

import "slices"

// A project is what is run with and without cheap.
type project struct {
	name string // of its folder

	// modules are copied, so that files in them can be replaced. The tests and the load are those of
	// the first. The others replace what it requires.
	modules []module

	// ways are compared. In the first the project is as it is. The tests are run in it, and in the
	// one whose tree is _tree.
	ways []way

	suites []suite

	// mapsFiles says that files of gigabytes are mapped, which do not count in the limit of memory.
	mapsFiles bool

	// loadArgs are arguments of the load, which is package proofload of the first module. It prints
	// an object with the values of columns.
	loadArgs []string
	columns  []column
	bars     []bar
}

// A module is one of a project, at the version that has been measured.
type module struct {
	path, version string
	sum           string // as in go.sum
	folder        string // of the module's files in a tree; empty where there is one module
}

// A way is how a project is built.
type way struct {
	name  string   // for the table
	tree  string   // the folder with the files to put in place of theirs, empty for none: _tree for those with cheap
	env   []string // beyond that of the command; $FOLDER is the folder of the project
	under string   // a tree below that one, empty for none
	keep  []string // types whose methods get a KeepAlive; see keepAlive
	args  []string // for go build and go test
}

// A suite is a set of tests.
type suite struct {
	name     string
	module   int // in modules
	packages []string
	args     []string // for go test
	forget   bool     // with our files the tests have no Close, and the files of _forget are beside them
	program  []string // for the test programs, behind -args
	why      string   // what args leave out, and why; empty if nothing
}

// A column is a value that the load prints, or processor, which is the time of the load's process in
// seconds.
type column struct {
	key, title string
	unit       string
	digits     int // behind the point
}

// A bar is how large the median of a value in a way may be, as a part of that in another way.
type bar struct {
	key          string
	way, against string
	most         float64
}

// processor is the key of the processor time.
const processor = "processor"

var projects = []*project{&pebble, &badger, &treesitter, &geos, &sqlite, &arrow}

func names() (list []string) {
	for _, p := range projects {
		list = append(list, p.name)
	}
	return list
}

// find returns a project, or nil.
func find(name string) *project {
	i := slices.IndexFunc(projects, func(p *project) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return projects[i]
}

// ours returns the way with cheap, or nil.
func (p *project) ours() *way {
	i := slices.IndexFunc(p.ways, func(w way) bool { return w.tree == "_tree" })
	if i < 0 {
		return nil
	}
	return &p.ways[i]
}
