package main

var sqlite = project{
	name: "sqlite",
	modules: []module{{
		path: "github.com/mattn/go-sqlite3", version: "v1.14.32", sum: "h1:JD12Ag3oLy1zQA+BNn74xRgaBbdhbNIDYvQUEuuErjs=",
	}},
	ways: []way{
		{name: "as it is"},
		{name: "one call for a row", tree: "_tree"},
	},
	suites: []suite{{name: "all", packages: []string{"."}, args: []string{"-timeout=20m"}}},
	columns: []column{
		{key: "select", title: "100,000 rows of 8 columns", unit: "ms"},
	},
	bars: []bar{{key: "select", way: "one call for a row", against: "as it is", most: 0.76}},
}
