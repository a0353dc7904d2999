module github.com/cheapgo/cheap/inspect

go 1.26.0

replace github.com/cheapgo/cheap => ..
