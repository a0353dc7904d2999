//go:build !cgo

package rivals

import "github.com/cheapgo/cheap/internal/replay/peers"

var cgoallocInfo = peers.Info{Name: "cgoalloc", Miss: "it needs cgo (CGO_ENABLED=1 and a C compiler)"}
