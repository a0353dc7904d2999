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
	t.Parallel()
	for _, name := range documents(t) {
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
	pathLike = regexp.MustCompile(`^[\w.-]*(/[\w.-]+)+/?$|^[\w.-]+\.(go|md|mod|sum|work|c|cc|h|hpp|js)$`)

	// symbolLike is code that names a symbol: pkg.Name, pkg.Type.Name,
	// Type.Name, or Name alone where that is exported, with or without
	// parentheses behind it.
	symbolLike = regexp.MustCompile(`^\*?([A-Za-z]\w*)((?:\.[A-Za-z]\w*){0,2})(\(\))?$`)

	// lowerCase tells names of Go from those of other worlds, such as
	// MAP_NORESERVE.
	lowerCase = regexp.MustCompile(`[a-z]`)
)

// foreign is what documents name that is not ours and not Go's.
var foreign = []string{
	"C.malloc", "C.free", "C.CString", "C.char", "go.mod", "pace", "inspect", "leaktest",
	"../cheap", "../../..",
}

// TestNames looks for every file and symbol that the documents name, and for the packages, scripts and
// folders of their commands.
func TestNames(t *testing.T) {
	t.Parallel()
	ours, standard := ourSymbols(t), standardSymbols(t)
	for _, name := range documents(t) {
		if name == "CHANGELOG.md" {
			continue // it names what is gone
		}
		for _, b := range parseDocument(t, name).blocks {
			dir, words := ".", strings.Fields(b.text)
			for i, word := range words {
				switch {
				case b.lang != "sh":
					continue
				case i > 0 && words[i-1] == "cd":
					dir, word = word, "."
				case !strings.HasPrefix(word, "./") && !strings.HasPrefix(word, ".ci/"):
					continue
				}
				if file := strings.TrimSuffix(word, "/..."); !exists(t, path.Join(dir, file)) && !exists(t, path.Join(path.Dir(name), file)) {
					t.Errorf("%s:%d: a command names %s, which is not there", name, b.line, file)
				}
			}
		}
		for _, s := range parseDocument(t, name).spans {
			text := strings.TrimSuffix(s.text, "/")
			switch {
			case slices.Contains(foreign, text) || slices.Contains(modules, text):
			case pathLike.MatchString(s.text):
				if !exists(t, text) && !exists(t, path.Join("internal", text)) && !exists(t, path.Join(path.Dir(name), text)) {
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
