module github.com/cheapgo/cheap/examples/lists

go 1.26.0

require (
	github.com/cheapgo/cheap v0.0.0
	github.com/mattn/go-sqlite3 v1.14.53
)

require golang.org/x/sys v0.49.0 // indirect

replace github.com/cheapgo/cheap => ../..
