module github.com/cheapgo/cheap/examples

go 1.26.0

require (
	github.com/cheapgo/cheap v0.0.0
	github.com/cheapgo/cheap/cmem v0.0.0
	github.com/cheapgo/cheap/inspect v0.0.0
	github.com/mattn/go-sqlite3 v1.14.32
	gonum.org/v1/plot v0.17.0
)

require (
	codeberg.org/go-fonts/liberation v0.5.0 // indirect
	codeberg.org/go-latex/latex v0.2.0 // indirect
	codeberg.org/go-pdf/fpdf v0.11.1 // indirect
	git.sr.ht/~sbinet/gg v0.7.0 // indirect
	github.com/ajstarks/svgo v0.0.0-20211024235047-1546f124cd8b // indirect
	github.com/golang/freetype v0.0.0-20170609003504-e2365dfdc4a0 // indirect
	github.com/google/pprof v0.0.0-20260906184651-6331bc6350fe // indirect
	github.com/ianlancetaylor/demangle v0.0.0-20250417193237-f615e6bd150b // indirect
	golang.org/x/image v0.30.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.28.0 // indirect
)

replace (
	github.com/cheapgo/cheap => ..
	github.com/cheapgo/cheap/cmem => ../cmem
	github.com/cheapgo/cheap/inspect => ../inspect
)
