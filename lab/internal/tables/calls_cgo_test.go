//go:build cgo && unix

package tables

import "testing"

// TestCgoCode reads the loops that call C, as TestCode reads the others.
func TestCgoCode(t *testing.T) {
	testCode(t, map[string][]string{
		"add":       {"cside._Cfunc_cside_add"},
		"addQuiet":  {"cside._Cfunc_cside_add_quiet"},
		"libcPairs": {"cside._Cfunc_cside_malloc", "cside._Cfunc_cside_free"},
	})
}
