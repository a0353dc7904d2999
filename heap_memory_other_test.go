//go:build !linux || cheap_gomem

package cheap

import "testing"

// mustBeUnmapped looks at nothing where the system does not say what is mapped.
func mustBeUnmapped(t *testing.T, addr, n uintptr) {}
