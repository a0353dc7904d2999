//go:build cgo && unix

package ctest

import (
	"testing"

	"github.com/cheapgo/cheap/internal/testcall"
	"github.com/cheapgo/cheap/own"
)

// TestClearLetsGo clears callbacks whose functions refer to their objects, and forgets these. What
// the table keeps to serve again must not refer to them, nor when it serves again.
func TestClearLetsGo(t *testing.T) {
	none(t)
	var others [300]own.Callback[func(int) int] // they get the cells of those that are cleared
	testcall.Aside(func() {
		objects := make([]*Object, len(others))
		for i := range objects {
			o := must(t)
			o.Connect(func(int) int { return int(o.Address()) })
			objects[i] = o
		}
		for _, o := range objects {
			o.Callback().Clear()
		}
	})
	none(t)
	for i := range others {
		others[i].Set(Calls, nil, func(int) int { return i })
	}
	none(t)
	for i := range others {
		others[i].Clear()
	}
}
