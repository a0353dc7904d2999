package repotest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// withoutCgo has one line for each name of a package that needs cgo.
var withoutCgo = map[string][]string{
	"libc": {
		"var _ libc.Allocator",
		"var _ libc.Option",
		"var _ = libc.Constructor(nil, nil)",
		"var _ = libc.Destructor(nil)",
		"var _ = libc.ContextDestructor(nil)",
		"var _ = libc.StatusDestructor(nil, nil)",
	},
	"calls": {
		"var _ *calls.Arg",
		"var _ *calls.Condition",
		"var _ *calls.Flags",
		"var _ *calls.Func",
		"var _ *calls.List",
		"var _ *calls.Option",
		"var _ *calls.Repeat",
		"var _ *calls.Result",
		"var _ *calls.ResultType",
		"var _ *calls.StopError",
		"var _ *calls.Texts",
		"var _ calls.Column[int64]",
		"var _ = calls.Address(nil)",
		"var _ = calls.AtLeast(nil, 0)",
		"var _ = calls.Bit(true)",
		"var _ = calls.Equal(nil, 0)",
		"var _ = calls.Float(0)",
		"var _ = calls.Get()",
		"var _ = calls.Int(0)",
		"var _ = calls.Less(nil, 0)",
		"var _ = calls.Load32At(nil)",
		"var _ = calls.LoadAt(nil)",
		"var _ = calls.Negative(nil)",
		"var _ = calls.New()",
		"var _ = calls.Nil(nil)",
		"var _ = calls.NotEqual(nil, 0)",
		"var _ = calls.Op(nil)",
		"var _ = calls.Pointer(nil)",
	},
	"cgoalloc": {
		"var _ cgoalloc.Allocator",
		"var _ *cgoalloc.ArenaAllocator",
		"var _ = cgoalloc.DefaultAllocator{}",
		"var _ *cgoalloc.FallbackAllocator",
		"var _ cgoalloc.FixedBlockAllocator",
		"var _ = cgoalloc.CBytes(nil, nil)",
		`var _ = cgoalloc.CString(nil, "")`,
		"var _ = cgoalloc.CreateArenaAllocator(nil)",
		"var _ = cgoalloc.CreateFallbackAllocator(nil, nil)",
		"var _, _ = cgoalloc.CreateFixedBlockAllocator(nil, 4096, 64, 8)",
	},
}

// TestWithoutCgo builds programs that use the packages that need cgo, without
// cgo. The compiler must name the cause, for each name that they export.
func TestWithoutCgo(t *testing.T) {
	for pkg, lines := range withoutCgo {
		t.Run(pkg, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "main.go")
			text := "package main\n\nimport \"" + modulePath + "/" + pkg + "\"\n\n" + strings.Join(lines, "\n") + "\n\nfunc main() {}\n"
			if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "-o", os.DevNull, file)
			cmd.Dir = root(t)
			cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
			out, err := cmd.CombinedOutput()
			if err == nil {
				t.Fatalf("it builds:\n%s", text)
			}
			if n := strings.Count(string(out), "needs_CGO_ENABLED_1_and_a_C_compiler"); n != len(lines) {
				t.Errorf("the compiler names the cause %d times, want %d, one for each line of\n%s\nit says\n%s", n, len(lines), text, out)
			}
			if n, want := exportedCount(t, pkg), len(lines); n != want {
				t.Errorf("%s exports %d types and functions, and %d are tried here", pkg, n, want)
			}
		})
	}
}

// exportedCount returns how many types and functions a package exports with cgo.
func exportedCount(t *testing.T, pkg string) (n int) {
	t.Helper()
	out := command(t, root(t), []string{"CGO_ENABLED=1"}, "go", "doc", "-short", "./"+pkg)
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "func ") || strings.HasPrefix(line, "type ") {
			n++
		}
	}
	return n
}
