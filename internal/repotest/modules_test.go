package repotest

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A modFile is what go mod edit -json prints, as far as it matters here.
type modFile struct {
	Module  struct{ Path string }
	Go      string
	Require []struct{ Path, Version string }
	Replace []struct{ Old, New struct{ Path string } }
	Tool    []struct{ Path string }
}

// readModFile returns a go.mod of the checkout.
var readModFile = kept(func(t *testing.T, name string) (m modFile) {
	t.Helper()
	goJSON(t, &m, "mod", "edit", "-json", name)
	return m
})

// A user's module graph has whatever the root module requires, for its tests
// too. So it requires next to nothing.
func TestRootModuleRequiresOnlySys(t *testing.T) {
	t.Parallel()
	m := readModFile(t, "go.mod")
	if m.Module.Path != modulePath {
		t.Errorf("go.mod is of module %s, want %s", m.Module.Path, modulePath)
	}
	for _, r := range m.Require {
		if r.Path != "golang.org/x/sys" {
			t.Errorf("go.mod requires %s; tests that need it belong in proof/itest, tools in tools/go.mod", r.Path)
		}
	}
	if len(m.Replace) > 0 || len(m.Tool) > 0 {
		t.Errorf("go.mod has replace (%v) or tool (%v) lines", m.Replace, m.Tool)
	}
}

// modules are the directories of the modules of the repository.
var modules = []string{".", "cmd/cheap", "cmem", "examples", "inspect", "lab", "proof", "tools", "vet", "x/arrow", "x/cgoalloc", "x/otel", "x/prometheus", "x/statsviz"}

func TestModules(t *testing.T) {
	t.Parallel()
	var found []string
	for _, name := range files(t) {
		if path.Base(name) == "go.mod" {
			found = append(found, path.Dir(name))
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, modules) {
		t.Fatalf("modules in %q, want %q", found, modules)
	}
	want := readModFile(t, "go.mod").Go
	for _, dir := range modules[1:] {
		m := readModFile(t, path.Join(dir, "go.mod"))
		if m.Go != want {
			t.Errorf("%s/go.mod says go %s, the root module go %s", dir, m.Go, want)
		}
		if p := path.Join(modulePath, dir); m.Module.Path != p {
			t.Errorf("%s/go.mod is of module %s, want %s", dir, m.Module.Path, p)
		}
		why := path.Join(dir, "README.md")
		if !exists(t, why) {
			why = path.Join(dir, "go.mod")
		}
		if !strings.Contains(read(t, why), "a module of its own because ") {
			t.Errorf("%s does not say why it is a module of its own", why)
		}
	}
}

// Without the workspace each module must build as well, as it does for a user
// who has only that one: by a replace line that leads to the checkout.
func TestSubmodulesReplaceRoot(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"cmd/cheap", "cmem", "examples", "inspect", "lab", "proof", "x/arrow", "x/cgoalloc", "x/otel", "x/prometheus", "x/statsviz"} {
		m := readModFile(t, path.Join(dir, "go.mod"))
		ok := false
		for _, r := range m.Replace {
			ok = ok || r.Old.Path == modulePath && path.Join(dir, r.New.Path) == "."
		}
		if !ok {
			t.Errorf("%s/go.mod does not replace %s by the checkout", dir, modulePath)
		}
	}
}

func TestWorkspace(t *testing.T) {
	t.Parallel()
	var w struct {
		Go  string
		Use []struct{ DiskPath string }
	}
	goJSON(t, &w, "work", "edit", "-json")
	var used []string
	for _, u := range w.Use {
		used = append(used, path.Clean(u.DiskPath))
	}
	slices.Sort(used)
	if want := []string{".", "cmd/cheap", "cmem", "inspect", "lab", "proof", "vet", "x/cgoalloc"}; !slices.Equal(used, want) {
		t.Errorf("go.work joins %q, want %q", used, want)
	}
	if want := readModFile(t, "go.mod").Go; w.Go != want {
		t.Errorf("go.work says go %s, go.mod go %s", w.Go, want)
	}
}

// TestWorkflow compares the jobs of the host with the steps of .ci/run, of which packages comes before each.
func TestWorkflow(t *testing.T) {
	t.Parallel()
	_, steps, _ := strings.Cut(read(t, ".ci/run"), "\nsteps=(packages ")
	steps, _, found := strings.Cut(steps, ")\n")
	if want := "step: [" + strings.ReplaceAll(steps, " ", ", ") + "]\n"; !found || !strings.Contains(read(t, ".github/workflows/ci.yml"), want) {
		t.Errorf(".github/workflows/ci.yml does not have %s", want)
	}
}

// TestScriptsList looks for the packages that the scripts of .ci list.
func TestScriptsList(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(`\./[\w./-]+(?:\{([\w,]+)\}([\w./-]*))?`)
	found := 0
	for _, script := range []string{".ci/lib", ".ci/run", ".ci/more"} {
		for line := range strings.Lines(read(t, script)) {
			if !strings.Contains(line, "go list ") {
				continue
			}
			for _, m := range pattern.FindAllStringSubmatch(line, -1) {
				before, _, _ := strings.Cut(m[0], "{")
				for part := range strings.SplitSeq(m[1], ",") {
					found++
					if dir := strings.TrimSuffix(before+part+m[2], "/..."); !exists(t, dir) {
						t.Errorf("%s lists %s, which is not there", script, dir)
					}
				}
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d packages found", found)
	}
}
