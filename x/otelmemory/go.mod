module github.com/cheapgo/cheap/x/otelmemory

go 1.26.0

require (
	github.com/cheapgo/cheap v0.0.0
	github.com/cheapgo/cheap/inspect v0.0.0
)

require (
	github.com/google/pprof v0.0.0-20260906184651-6331bc6350fe // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace (
	github.com/cheapgo/cheap => ../..
	github.com/cheapgo/cheap/inspect => ../../inspect
)
