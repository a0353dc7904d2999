package osmem

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/watch/procfs"
)

// recordNames replaces the call of the kernel by one that records it and returns err.
func recordNames(t *testing.T, err error) *[]string {
	var calls []string
	t.Cleanup(ReplaceName(func(addr, size uintptr, p Purpose) error {
		calls = append(calls, fmt.Sprintf("%#x %d %s", addr, size, p))
		return err
	}))
	return &calls
}

// TestNameCalls checks which memory is given which name.
func TestNameCalls(t *testing.T) {
	calls := recordNames(t, nil)
	addr, err := Reserve(1<<20, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer Release(addr, 1<<20)
	m, err := Map(PageSize)
	if err != nil {
		t.Fatal(err)
	}
	sparse, err := MapSparse(2 * PageSize)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		fmt.Sprintf("%#x %d cheap: heap", addr, 1<<20),
		fmt.Sprintf("%#x %d cheap: metadata", m, PageSize),
		fmt.Sprintf("%#x %d cheap: metadata", sparse, 2*PageSize),
	}
	if GoBacked {
		want = want[1:]
	}
	if got := strings.Join(*calls, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("the names are\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}

// TestNoNames checks that a kernel without names is asked once.
func TestNoNames(t *testing.T) {
	calls := recordNames(t, errors.New("invalid argument"))
	for range 3 {
		if _, err := Map(PageSize); err != nil {
			t.Fatal(err)
		}
	}
	if len(*calls) != 1 || Names() {
		t.Errorf("%d calls, names: %v", len(*calls), Names())
	}
}

// TestNamesInSmaps looks into /proc/self/smaps. Where the kernel has names, ours are there;
// where it has none, it has refused ours.
func TestNamesInSmaps(t *testing.T) {
	addr, err := Map(PageSize)
	if err != nil {
		t.Fatal(err)
	}
	refused := sysSetName(addr, PageSize, Metadata) != nil
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	found := false
	if err := procfs.Mappings(maps, func(m procfs.Mapping) (more bool) {
		found = m.Name == "[anon:cheap: metadata]"
		return !found
	}); err != nil {
		t.Fatal(err)
	}
	if found == refused {
		t.Errorf("the kernel refuses names: %v; a mapping has ours: %v", refused, found)
	}
}
