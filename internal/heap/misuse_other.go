//go:build !linux

package heap

// mappingOf knows nothing where there is no list of mappings.
func mappingOf(p uintptr) (string, bool) { return "", false }
