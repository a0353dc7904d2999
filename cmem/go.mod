module github.com/cheapgo/cheap/cmem

go 1.26.0

require (
	github.com/cheapgo/cheap v0.0.0
	github.com/google/pprof v0.0.0-20260906184651-6331bc6350fe
	github.com/ianlancetaylor/demangle v0.0.0-20250417193237-f615e6bd150b
)

require golang.org/x/sys v0.49.0

replace github.com/cheapgo/cheap => ..
