module github.com/cheapgo/cheap/examples/where

go 1.26.0

require (
	github.com/cheapgo/cheap v0.0.0
	github.com/cheapgo/cheap/cmem v0.0.0
	github.com/cheapgo/cheap/inspect v0.0.0
	github.com/mattn/go-sqlite3 v1.14.32
)

require (
	github.com/google/pprof v0.0.0-20260906184651-6331bc6350fe // indirect
	github.com/ianlancetaylor/demangle v0.0.0-20250417193237-f615e6bd150b // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace (
	github.com/cheapgo/cheap => ../..
	github.com/cheapgo/cheap/cmem => ../../cmem
	github.com/cheapgo/cheap/inspect => ../../inspect
)
