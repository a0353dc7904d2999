package corpus

import (
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"

	"github.com/cheapgo/cheap/vet"
	"github.com/cheapgo/cheap/vet/internal/analyzer"
)

var (
	full    = flag.String("corpus", "", "measure the modules of modules.txt whose paths contain this `text`, or all; they are downloaded")
	results = flag.String("results", "", "write what was found and what was missed to files in this `folder`")
)

//go:embed modules.txt
var modules string

var measured = []struct {
	kind     StatementKind
	analyzer string
}{{Free, "cfree"}, {KeepAlive, "keepalive"}, {Method, "cfree"}}

func analyzerOf(name string) *analysis.Analyzer {
	all := vet.Analyzers()
	return all[slices.IndexFunc(all, func(a *analysis.Analyzer) bool { return a.Name == name })]
}

// TestSmall deletes statements of a package in testdata.
func TestSmall(t *testing.T) {
	dir, err := filepath.Abs("testdata/small")
	if err != nil {
		t.Fatal(err)
	}
	m, err := Open(dir, vet.Analyzers(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Findings {
		if f.Analyzer != "perobject" {
			t.Errorf("found without a deletion: %v", f)
		}
	}
	want := map[StatementKind]int{Free: 1, KeepAlive: 2, Method: 1}
	for _, k := range measured {
		list, err := m.Mutate(k.kind, analyzerOf(k.analyzer))
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != want[k.kind] {
			t.Errorf("%s: %d deletions, want %d", k.kind, len(list), want[k.kind])
		}
		for _, mu := range list {
			if mu.Found != mu.Needed {
				t.Errorf("%s:%d: %s: found %v, needed %v", mu.File, mu.Line, mu.Text, mu.Found, mu.Needed)
			}
		}
	}
}

// TestCorpus prints a line of a table for each module: its findings by analyzer, and how many of
// the deletions of each kind were found, of those that matter, and of all.
func TestCorpus(t *testing.T) {
	if *full == "" {
		return // it downloads modules, and takes minutes
	}
	analyzer.ManyAlike = math.MaxInt
	for _, a := range vet.Analyzers() {
		if f := a.Flags.Lookup("group"); f != nil {
			if err := f.Value.Set("0"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for line := range strings.Lines(modules) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") || *full != "all" && !strings.Contains(line, *full) {
			continue
		}
		dir := t.TempDir()
		download(t, line, dir)
		measure(t, line, dir)
	}
}

func measure(t *testing.T, name, dir string) {
	m, err := Open(dir, vet.Analyzers(), "")
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	var found, missed strings.Builder
	for _, f := range m.Findings {
		counts[f.Analyzer]++
		fmt.Fprintln(&found, f)
	}
	line := "| " + name
	for _, a := range vet.Analyzers() {
		line += fmt.Sprintf(" | %d", counts[a.Name])
	}
	for _, k := range measured {
		list, err := m.Mutate(k.kind, analyzerOf(k.analyzer))
		if err != nil {
			t.Fatal(err)
		}
		needed, foundOf, foundAll := 0, 0, 0
		for _, mu := range list {
			if mu.Needed {
				needed++
			}
			switch {
			case mu.Found:
				foundAll++
				if mu.Needed {
					foundOf++
				}
			default:
				fmt.Fprintf(&missed, "%s needed=%v %s:%d: %s\n", k.kind, mu.Needed, mu.File, mu.Line, mu.Text)
			}
		}
		line += fmt.Sprintf(" | %d of %d; %d of %d", foundOf, needed, foundAll, len(list))
	}
	fmt.Println(line + " |")
	if *results != "" {
		base := filepath.Join(*results, strings.NewReplacer("/", "_", "@", "_").Replace(name))
		for ext, text := range map[string]string{".found": found.String(), ".missed": missed.String()} {
			if err := os.WriteFile(base+ext, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// download copies a module into a folder, where it can be written to.
func download(t *testing.T, module, dir string) {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go mod download %s: %v", module, err)
	}
	var info struct{ Dir string }
	if err := json.Unmarshal(out, &info); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(info.Dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		path, _, _ := strings.Cut(module, "@")
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+path+"\n\ngo 1.21\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
