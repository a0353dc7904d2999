//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package source

import (
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestOrder compares what the compiled files define and use with the list in internal.h: a file uses
// only files that come before it there.
func TestOrder(t *testing.T) {
	t.Parallel()
	var names []string
	header, err := Files.ReadFile("internal.h")
	testcall.Must(t, err)
	for _, m := range regexp.MustCompile(`(?m)^//\t(\w+\.c) `).FindAllStringSubmatch(string(header), -1) {
		names = append(names, m[1])
	}
	all, err := fs.Glob(Files, "*.c")
	testcall.Must(t, err)
	if sorted := slices.Sorted(slices.Values(names)); !slices.Equal(sorted, all) {
		t.Fatalf("internal.h lists %v, and there are %v", sorted, all)
	}
	dir := t.TempDir()
	testcall.Must(t, os.CopyFS(dir, Files))
	cc := strings.Fields(os.Getenv("CC"))
	if len(cc) == 0 {
		cc = []string{"gcc"}
	}
	for _, args := range [][]string{nil, {"-DCMEM_SHARED"}} {
		var compiled []string
		for _, name := range names {
			if args != nil || name != "shared.c" && name != "attach.c" && name != "preload.c" {
				compiled = append(compiled, name)
			}
		}
		cmd := exec.Command(cc[0], slices.Concat(cc[1:], []string{"-c", "-fPIC"}, args, compiled)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		defined := map[string]bool{}
		for _, name := range compiled {
			uses, defines := symbols(t, filepath.Join(dir, strings.TrimSuffix(name, ".c")+".o"))
			for _, s := range defines {
				defined[s] = true
			}
			for _, s := range uses {
				if !defined[s] {
					t.Errorf("%s uses %s, which no file before it defines", name, s)
				}
			}
		}
	}
}

// symbols returns the symbols of this package that an object uses and defines.
func symbols(t *testing.T, object string) (uses, defines []string) {
	t.Helper()
	f, err := elf.Open(object)
	testcall.Must(t, err)
	defer f.Close()
	all, err := f.Symbols()
	testcall.Must(t, err)
	for _, s := range all {
		switch {
		case !strings.HasPrefix(s.Name, "cmem_") || elf.ST_TYPE(s.Info) == elf.STT_SECTION || elf.ST_TYPE(s.Info) == elf.STT_FILE:
		case s.Section == elf.SHN_UNDEF:
			uses = append(uses, s.Name)
		default:
			defines = append(defines, s.Name)
		}
	}
	if len(uses)+len(defines) == 0 {
		t.Errorf("%s has no symbols", object)
	}
	return uses, defines
}
