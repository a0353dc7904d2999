//go:build asan

package ctouch

import (
	"strings"
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testchild"
)

// TestListIsLeak is TestListIsNoLeak of package asan in a program that does not import it.
func TestListIsLeak(t *testing.T) {
	output, status := testchild.Run(t, func() {
		for range 100 { // an address may still be on a stack
			List(cheap.Malloc(8), 10)
		}
	})
	if status == 0 || !strings.Contains(output, "LeakSanitizer: detected memory leaks") {
		t.Errorf("status %d; want a report of leaks\n%s", status, output)
	}
}
