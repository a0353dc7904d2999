package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/vet"
	"github.com/cheapgo/cheap/vet/internal/cli"
)

func run(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = cli.Run(vet.Analyzers(), args, &out, &err)
	return code, out.String(), err.String()
}

const leaky = "./testdata/leaky"

func TestFindings(t *testing.T) {
	const leak, tiny = "leaky.go:8:45: the result of C.CString is never freed", "leaky_test.go:5:41: int has 8 bytes"
	for _, test := range []struct {
		args       []string
		code       int
		want, deny []string
	}{
		{[]string{leaky}, 1, []string{leak, tiny}, []string{"tagged.go"}},
		{[]string{"-tests=false", leaky}, 1, []string{leak}, []string{tiny}},
		{[]string{"-cfree", leaky}, 1, []string{leak}, []string{tiny}},
		{[]string{"-cfree=false", leaky}, 1, []string{tiny}, []string{leak}},
		{[]string{"-tags=tagged", leaky}, 1, []string{leak, "tagged.go:8:25"}, nil},
		{[]string{"-c=0", "-cfree", leaky}, 1, []string{"8\tfunc look"}, nil},
		{[]string{"-keepalive", leaky}, 0, nil, []string{leak, tiny}},
		{[]string{"-json", leaky}, 0, []string{`"message": "the result of C.CString`, `"category": "dropped"`}, nil},
	} {
		code, stdout, stderr := run(test.args...)
		if code != test.code || stderr != "" {
			t.Errorf("%q: exit code %d, want %d; stderr %q", test.args, code, test.code, stderr)
		}
		for _, want := range test.want {
			if !strings.Contains(stdout, want) {
				t.Errorf("%q: no %q in\n%s", test.args, want, stdout)
			}
		}
		for _, deny := range test.deny {
			if strings.Contains(stdout, deny) {
				t.Errorf("%q: %q in\n%s", test.args, deny, stdout)
			}
		}
	}
}

func TestSARIF(t *testing.T) {
	code, stdout, stderr := run("-sarif", leaky)
	if code != 0 || stderr != "" {
		t.Errorf("exit code %d, stderr %q", code, stderr)
	}
	var log struct {
		Version string
		Runs    []struct {
			Results []struct {
				RuleID    string
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(stdout), &log); err != nil {
		t.Fatal(err)
	}
	if log.Version != "2.1.0" || len(log.Runs) != 1 || len(log.Runs[0].Results) != 2 {
		t.Fatalf("got %+v", log)
	}
	at := map[string]int{}
	for _, r := range log.Runs[0].Results {
		l := r.Locations[0].PhysicalLocation
		at[r.RuleID+" "+filepath.ToSlash(l.ArtifactLocation.URI)] = l.Region.StartLine
	}
	if at["cfree/dropped testdata/leaky/leaky.go"] != 8 || at["cleanupcycle/tiny testdata/leaky/leaky_test.go"] != 5 {
		t.Errorf("got %v", at)
	}
}

// What is wrong is said in one line, with exit code 2.
func TestWrong(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "no packages"},
		{[]string{"-nosuchflag", leaky}, "nosuchflag"},
		{[]string{"-c=x", leaky}, "invalid value"},
		{[]string{"-keepalive.group=-5", leaky}, "-keepalive.group: the least is 0"},
		{[]string{"-keepalive.group=x", leaky}, "-keepalive.group: give a number"},
		{[]string{"./nosuchfolder"}, "nosuchfolder"},
		{[]string{"nosuch.example/module"}, "nosuch.example/module"},
		{[]string{"./testdata/missing"}, "nosuch.example/module"},
		{[]string{"-json", "-sarif", leaky}, "exclude"},
		{[]string{"help", "nosuchanalyzer"}, "no analyzer nosuchanalyzer"},
	} {
		code, stdout, stderr := run(test.args...)
		if code != 2 || stdout != "" || strings.Count(stderr, "\n") != 1 || strings.HasSuffix(stderr, ":\n") || !strings.HasPrefix(stderr, "cheapvet: ") || !strings.Contains(stderr, test.want) {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q; want 2 and one line with %q", test.args, code, stdout, stderr, test.want)
		}
	}
}

// One package that cannot be read does not keep the others from being looked at.
func TestBroken(t *testing.T) {
	const leak = "package %s\n\n// #include <stdlib.h>\nimport \"C\"\n\nfunc F() { C.CString(``) }\n"
	module(t, map[string]string{
		"good/good.go":     fmt.Sprintf(leak, "good"),
		"syntax/syntax.go": "package syntax\n\nfunc F( {}\n",
		"missing/m.go":     fmt.Sprintf(leak, "missing") + "\nvar V = module.V\n",
		"missing/i.go":     "package missing\n\nimport \"nosuch.example/module\"\n\nvar W module.T\n",
		"above/above.go":   fmt.Sprintf(leak, "above") + "\nvar V = missing.V\n",
		"above/i.go":       "package above\n\nimport \"example.com/m/missing\"\n\nvar W = missing.W\n",
	})
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"./..."}, []string{"above.go:6:", "good.go:6:"}},
		{[]string{"-json", "./..."}, []string{"example.com/m/above", "example.com/m/good"}},
		{[]string{"-sarif", "./good", "./syntax", "./missing"}, []string{"good/good.go"}},
	} {
		code, stdout, stderr := run(test.args...)
		lines := strings.Split(stderr, "\n")
		slices.Sort(lines)
		if code != 2 || len(lines) != 3 || !strings.HasPrefix(lines[1], "cheapvet: example.com/m/missing: ") || !strings.Contains(lines[1], "nosuch.example/module") || strings.HasSuffix(lines[1], ":") || !strings.HasPrefix(lines[2], "cheapvet: example.com/m/syntax: ") {
			t.Errorf("%q: exit code %d, stderr %q; want 2, and a line for each of the packages missing and syntax", test.args, code, stderr)
		}
		for _, want := range test.want {
			if !strings.Contains(stdout, want) {
				t.Errorf("%q: no %q in\n%s", test.args, want, stdout)
			}
		}
		if strings.Contains(stdout, "m/missing") || strings.Contains(stdout, "m/syntax") {
			t.Errorf("%q: a broken package is in\n%s", test.args, stdout)
		}
	}
}

// A package whose test files are broken comes without them.
func TestBrokenTests(t *testing.T) {
	const leak = "package %s\n\n// #include <stdlib.h>\nimport \"C\"\n\nfunc F() { C.CString(``) }\n"
	module(t, map[string]string{
		"inside/p.go":        fmt.Sprintf(leak, "inside"),
		"inside/i_test.go":   "package inside\n\nimport _ \"nosuch.example/module\"\n",
		"syntax/p.go":        fmt.Sprintf(leak, "syntax"),
		"syntax/i_test.go":   "package syntax\n\nfunc F( {}\n",
		"outside/p.go":       fmt.Sprintf(leak, "outside"),
		"outside/i_test.go":  "package outside\n",
		"outside/o_test.go":  "package outside_test\n\nimport _ \"nosuch.example/module\"\n",
		"external/p.go":      fmt.Sprintf(leak, "external"),
		"external/o_test.go": "package external_test\n\nimport _ \"nosuch.example/module\"\n",
	})
	code, stdout, stderr := run("./...")
	if code != 2 || strings.Count(stderr, "\n") != 4 || strings.Count(stderr, "nosuch.example/module\n") != 3 {
		t.Errorf("exit code %d, stderr %q; want 2, and a line for each package", code, stderr)
	}
	for _, name := range []string{"inside", "syntax", "outside", "external"} {
		if n := strings.Count(stdout, name+"/p.go:6:"); n != 1 {
			t.Errorf("%d findings in %s, want 1:\n%s", n, name, stdout)
		}
	}
}

// A pattern that names nothing is a mistake, and no reason to say that all is well.
func TestNoPackages(t *testing.T) {
	module(t, map[string]string{"README": ""})
	code, stdout, stderr := run("./...")
	if want := "cheapvet: no packages match ./...\n"; code != 1 || stdout != "" || stderr != want {
		t.Errorf("exit code %d, stdout %q, stderr %q; want 2 and %q", code, stdout, stderr, want)
	}
}

// module makes a module with files, and its folder the current one.
func module(t *testing.T, texts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	texts["go.mod"] = "module example.com/m\n\ngo 1.26\n"
	for name, text := range texts {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"help"}, {"help", "cfree"}} {
		code, stdout, stderr := run(args...)
		if code != 0 || stderr != "" || !strings.Contains(stdout, "cfree") {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q", args, code, stdout, stderr)
		}
	}
	if _, stdout, _ := run("-h"); !strings.Contains(stdout, "Examples:") || !strings.Contains(stdout, "-keepalive.group") {
		t.Errorf("-h prints\n%s", stdout)
	}
	for _, a := range vet.Analyzers() {
		if summary, rest, _ := strings.Cut(a.Doc, "\n"); len(summary) > 80 || !strings.Contains(rest, "kind") && !strings.Contains(rest, "reports\n\n") {
			t.Errorf("%s: the documentation has no short summary, or no kinds: %s", a.Name, summary)
		}
	}
}
