package heapprofile

import "testing"

func TestAllocatorOf(t *testing.T) {
	for function, want := range map[string]string{
		"duckdb_je_pages_map": "jemalloc (duckdb_je_)", "je_malloc": "jemalloc", "_rjem_je_extent_alloc_mmap": "jemalloc (_rjem_je_)",
		"_rjem_malloc": "jemalloc (_rjem_)", "_mi_os_alloc": "mimalloc", "mi_malloc": "mimalloc", "tc_malloc": "tcmalloc",
		"_ZN8tcmalloc7SysAllocEm": "tcmalloc", "malloc": "", "project_map": "", "": "",
	} {
		if got := allocatorOf(function); got != want {
			t.Errorf("%q: %q, want %q", function, got, want)
		}
	}
}

// TestLookAt has ranges that are no mapping, and parts of one.
func TestLookAt(t *testing.T) {
	all, err := LookAt(2, func(i int) (from, to uint64) { return uint64(i) * 4096, uint64(i+1) * 4096 })
	if err != nil {
		return // there is no /proc
	}
	if all[0] != (Held{}) || all[1] != (Held{}) {
		t.Errorf("%+v", all)
	}
}
