module github.com/cheapgo/cheap/cmd/cheap

go 1.26.0

require (
	github.com/CannibalVox/cgoalloc v1.2.1
	github.com/CannibalVox/cgoparam v1.1.0
	github.com/cheapgo/cheap v0.0.0
	github.com/rogpeppe/go-internal v1.16.0
	golang.org/x/term v0.47.0
	modernc.org/memory v1.12.1
)

require (
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/tools v0.26.0 // indirect
)

replace github.com/cheapgo/cheap => ../..
