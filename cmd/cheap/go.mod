// It is a module of its own because it requires what reads profiles and terminals, which users of the
// root do not need.
module github.com/cheapgo/cheap/cmd/cheap

go 1.26.0

require (
	github.com/cheapgo/cheap v0.0.0
	github.com/cheapgo/cheap/inspect v0.0.0
	github.com/google/pprof v0.0.0-20260906184651-6331bc6350fe
	github.com/rogpeppe/go-internal v1.16.0
	golang.org/x/sys v0.49.0
	golang.org/x/term v0.47.0
)

require github.com/ianlancetaylor/demangle v0.0.0-20250417193237-f615e6bd150b // indirect

require (
	github.com/cheapgo/cheap/cmem v0.0.0
	golang.org/x/tools v0.26.0 // indirect
)

replace (
	github.com/cheapgo/cheap => ../..
	github.com/cheapgo/cheap/inspect => ../../inspect
)

replace github.com/cheapgo/cheap/cmem => ../../cmem
