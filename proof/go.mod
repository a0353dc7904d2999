module github.com/cheapgo/cheap/proof

go 1.26.0

require (
	github.com/cheapgo/cheap v0.0.0
	go.uber.org/goleak v1.3.0
	pgregory.net/rapid v1.2.0
)

require golang.org/x/sys v0.49.0 // indirect

replace github.com/cheapgo/cheap => ..
