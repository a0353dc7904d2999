package main

var treesitter = project{
	name: "treesitter",
	modules: []module{{
		path: "github.com/tree-sitter/go-tree-sitter", version: "v0.25.0", sum: "h1:sx6kcg8raRFCvc9BnXglke6axya12krCJF5xJ2sftRU=",
	}},
	ways: []way{
		{name: "as it is, nothing closed"},
		{name: "as it is, closed by hand", env: []string{"PROOF_CLOSE=1"}},
		{name: "runtime.AddCleanup", under: "_tree", tree: "_cleanup", keep: owners},
		{name: "own and pace", tree: "_tree", keep: owners},
		{name: "own and pace, C's malloc", under: "_tree", tree: "_malloc", keep: owners},
	},
	suites: []suite{
		{name: "as they are", packages: []string{"."}, args: untimed, why: timed},
		{name: "every Close removed", packages: []string{"."}, args: untimed, forget: true, why: timed + " Then they run with GOGC=1, and fail if something is not freed in the end."},
	},
	columns: []column{
		{key: "resident", title: "peak resident", unit: "MB"},
		{key: "collections", title: "collections"},
		{key: processor, title: "processor time", unit: "s", digits: 2},
	},
	bars: []bar{
		{key: "resident", way: "own and pace", against: "runtime.AddCleanup", most: 0.6},
		{key: "resident", way: "own and pace, C's malloc", against: "runtime.AddCleanup", most: 0.6},
		{key: processor, way: "own and pace", against: "runtime.AddCleanup", most: 1.4},
		{key: processor, way: "own and pace, C's malloc", against: "runtime.AddCleanup", most: 1},
	},
}

// owners are the types of go-tree-sitter that own something, or refer to what does.
var owners = []string{"Tree", "TreeCursor", "Node", "Parser", "Query", "QueryCursor", "QueryMatch", "QueryMatches", "QueryCaptures", "LookaheadIterator"}

var untimed = []string{"-skip=^(TestParsingWithTimeout.*|TestParsingOnMultipleThreads)$"}

const timed = "without the tests that assert how long parsing takes, and one whose file is not in the module."
