//go:build !(linux && cgo && (amd64 || arm64))

package otelmemory

import "github.com/cheapgo/cheap/internal/sample"

const supported = false

var tracer sample.Tracer

func attached() (alloc, free bool) { return false, false }
