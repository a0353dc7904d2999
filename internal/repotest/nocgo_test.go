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
		"var _ = libc.Trim()",
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

// TestWithoutCgo builds a program that uses the packages that need cgo, without
// cgo. The compiler must name the cause, for each name that they export.
func TestWithoutCgo(t *testing.T) {
	t.Parallel()
	texts := map[string]string{"main.go": "package main\n\nfunc main() {}\n"}
	for pkg, lines := range withoutCgo {
		texts[pkg+".go"] = "package main\n\nimport \"" + modulePath + "/" + pkg + "\"\n\n" + strings.Join(lines, "\n") + "\n"
	}
	dir := t.TempDir()
	writeFiles(t, dir, texts)
	args := []string{"build", "-gcflags=-e", "-o", os.DevNull}
	for name := range texts {
		args = append(args, filepath.Join(dir, name))
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root(t)
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatal("it builds")
	}
	for pkg, lines := range withoutCgo {
		t.Run(pkg, func(t *testing.T) {
			n := 0
			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, pkg+".go:") && strings.Contains(line, "needs_CGO_ENABLED_1_and_a_C_compiler") {
					n++
				}
			}
			if n != len(lines) {
				t.Errorf("the compiler names the cause %d times, want %d, one for each line of\n%s\nit says\n%s", n, len(lines), texts[pkg+".go"], out)
			}
			d := parsePackage(t, pkg)
			if n, want := len(d.Types)+len(d.funcs(false)), len(lines); n != want {
				t.Errorf("%s exports %d types and functions, and %d are tried here", pkg, n, want)
			}
		})
	}
}
