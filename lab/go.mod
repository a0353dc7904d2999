// It is a module of its own because it requires the allocators that it compares with, and what
// drives a browser.
module github.com/cheapgo/cheap/lab

go 1.26.0

require (
	github.com/CannibalVox/cgoalloc v1.2.1
	github.com/CannibalVox/cgoparam v1.1.0
	github.com/cheapgo/cheap v0.0.0
	github.com/cheapgo/cheap/inspect v0.0.0
	github.com/cheapgo/cheap/x/cgoalloc v0.0.0
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
	github.com/google/pprof v0.0.0-20260906184651-6331bc6350fe
	golang.org/x/perf v0.0.0-20260908200009-22c9c6c9d4da
	golang.org/x/sys v0.49.0
	modernc.org/memory v1.12.1
)

require (
	github.com/aclements/go-moremath v0.0.0-20210112150236-f10218a38794 // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
)

replace (
	github.com/cheapgo/cheap => ..
	github.com/cheapgo/cheap/inspect => ../inspect
	github.com/cheapgo/cheap/x/cgoalloc => ../x/cgoalloc
)
