package repotest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLinks looks for the target of each link between documents.
func TestLinks(t *testing.T) {
	for _, name := range documents {
		for _, l := range parseDocument(t, name).links {
			if strings.Contains(l.text, "://") {
				continue
			}
			file, title, _ := strings.Cut(l.text, "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if !exists(t, target) {
				t.Errorf("%s:%d: there is no %s", name, l.line, target)
			} else if title != "" && !slices.Contains(parseDocument(t, target).titles, title) {
				t.Errorf("%s:%d: %s has no title %q", name, l.line, target, title)
			}
		}
	}
}

func exists(t *testing.T, name string) bool {
	_, err := os.Stat(filepath.Join(root(t), filepath.FromSlash(name)))
	return err == nil
}

var (
	// pathLike is code that names a file or a directory of the checkout.
	pathLike = regexp.MustCompile(`^[\w.-]*(/[\w.-]+)+/?$|^[\w.-]+\.(go|md|mod|sum|work|c|h)$`)

	// symbolLike is code that names a symbol: pkg.Name, pkg.Type.Name,
	// Type.Name, or Name alone where that is exported, with or without
	// parentheses behind it.
	symbolLike = regexp.MustCompile(`^\*?([A-Za-z]\w*)((?:\.[A-Za-z]\w*){0,2})(\(\))?$`)

	// lowerCase tells names of Go from those of other worlds, such as
	// MAP_NORESERVE.
	lowerCase = regexp.MustCompile(`[a-z]`)
)

// foreign is what documents name that is not ours and not Go's, and what of
// ours exists as a plan: the rooms that docs/architecture.md keeps for later.
var foreign = []string{
	"C.malloc", "C.free", "C.CString", "go.mod", "pace", "inspect", "leaktest",
	"../cheap", "../../..", "own.Owner",
}

// TestNames looks for every file and symbol that the documents name.
func TestNames(t *testing.T) {
	ours, standard := ourSymbols(t), standardSymbols(t)
	for _, name := range documents {
		if name == "CHANGELOG.md" {
			continue // it names what is gone
		}
		for _, s := range parseDocument(t, name).spans {
			text := strings.TrimSuffix(s.text, "/")
			switch {
			case slices.Contains(foreign, text) || slices.Contains(modules, text):
			case pathLike.MatchString(s.text):
				if !exists(t, text) && !exists(t, path.Join("internal", text)) {
					t.Errorf("%s:%d: there is no file %s", name, s.line, s.text)
				}
			case symbolLike.MatchString(s.text):
				if !isDeclared(ours, standard, s.text) {
					t.Errorf("%s:%d: nothing is called %s", name, s.line, s.text)
				}
			}
		}
	}
}

// isDeclared reports whether a symbol that symbolLike matches exists. Names
// that begin with a small letter and have no dot are words, of Go, of a command
// line, of a format.
func isDeclared(ours, standard symbolTable, text string) bool {
	m := symbolLike.FindStringSubmatch(text)
	first, rest := m[1], strings.TrimPrefix(m[2], ".")
	if rest == "" {
		return !lowerCase.MatchString(text) || first[0] >= 'a' || ours.has("", first)
	}
	return ours.has(first, rest) || ours.has("", first+"."+rest) || standard.has(first, rest)
}

// checkedCommands are the commands that documents show, and how it is known
// that they work. A command that is not here fails the test: a document that
// shows one is a promise.
var checkedCommands = map[string]string{
	"go run ./cmd/cheap bench":  "the tests of cmd/cheap run it with less to do",
	"go run ./cmd/cheap replay": "the same",

	"go run ./cmd/cheap bench -run workloads": "the same",

	"go test work": "a step of .ci/run",
	"go vet work":  "a step of .ci/run",

	".ci/run":                       "is what a change has to pass",
	".ci/run gofmt vet staticcheck": "the same, in part",
	"GOWORK=off go tool -modfile=tools/go.mod staticcheck ./...":     "a step of .ci/run",
	"go test -run='^$' -bench=Ratio -benchtime=1x ./cmd/cheap/bench": "a step of .ci/run runs all benchmarks",

	"go test -run='^$' -bench='OwnRatio|OwnLive|OwnTail' -benchtime=1x -cpu=1,2 ./cmd/cheap/bench": "the same",

	"go test -run='^$' -fuzz=FuzzHeap -fuzztime=1m .": "its seeds are part of the tests",

	"go test -run='^TestHeap$' -cheaptest.time=10s ./cheaptest": "TestHeap of cheaptest, and TestTime",
	"go test -tags=cheap_check ./...":                           "TestReleased of x/arrow",

	"cd examples/cache":             "the next two are for that folder",
	"GOWORK=off go run . -rounds 7": "the tests of examples/cache run it with less to do",
	"GOWORK=off go test ./...":      "a step of .ci/run",

	"cd examples/where":   "the next ones are for that folder",
	"GOWORK=off go run .": "the tests of examples/where build and run it",

	"curl -s localhost:6060/debug/cheap/resident.txt":                                    "TestDocument of examples/where",
	"curl -s localhost:6060/debug/cheap/mappings.txt":                                    "the same",
	"curl -s localhost:6060/debug/cheap/libraries.txt":                                   "the same",
	"curl -s localhost:6060/debug/cheap/growth.txt":                                      "the same",
	"go tool pprof -top localhost:6060/debug/pprof/heap":                                 "the same",
	"go tool pprof -top -cum -show='^main' 'localhost:6060/debug/cheap/cmem?seconds=10'": "the same",

	"go mod init example.com/hello": "TestCheckout",
	"go mod edit -require=github.com/cheapgo/cheap@v0.0.0 -replace=github.com/cheapgo/cheap=../cheap": "TestCheckout",
	"go mod tidy": "TestCheckout",
	"go run .":    "TestCheckout",

	"go mod edit -replace=github.com/CannibalVox/cgoalloc=./forward/cgoalloc": "TestForward",
	"go mod edit -replace=github.com/CannibalVox/cgoparam=./forward/cgoparam": "TestForward",
	"go mod edit -replace=github.com/cheapgo/cheap=../cheap":                  "TestForward",

	"go mod edit -require=github.com/cheapgo/cheap/x/arrow@v0.0.0 -replace=github.com/cheapgo/cheap/x/arrow=../cheap/x/arrow -replace=github.com/cheapgo/cheap=../cheap": "TestReadme of x/arrow",
	"go mod edit -replace=modernc.org/memory=../cheap/x/modernc -replace=github.com/cheapgo/cheap=../cheap":                                                              "TestReplace of x/modernc",
}

// cheapCommands are those that are run here.
var cheapCommands = []string{"go build ./..."}

func TestCommands(t *testing.T) {
	var shown []string
	for _, name := range documents {
		for _, b := range parseDocument(t, name).blocks {
			if b.lang != "sh" {
				continue
			}
			for line := range strings.Lines(b.text) {
				line, _, _ = strings.Cut(line, " #")
				line = strings.TrimSpace(line)
				shown = append(shown, line)
				if checkedCommands[line] == "" && !slices.Contains(cheapCommands, line) {
					t.Errorf("%s:%d: who knows that %q works?", name, b.line, line)
				}
			}
		}
	}
	for _, line := range cheapCommands {
		if !slices.Contains(shown, line) {
			t.Errorf("no document shows %q", line)
			continue
		}
		t.Run(line, func(t *testing.T) { command(t, root(t), nil, "bash", "-c", line) })
	}
	for line := range checkedCommands {
		if !slices.Contains(shown, line) {
			t.Errorf("no document shows %q", line)
		}
	}
}
