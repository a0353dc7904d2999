module github.com/cheapgo/cheap/internal/itest

go 1.26.0

require github.com/cheapgo/cheap v0.0.0

replace github.com/cheapgo/cheap => ../..
