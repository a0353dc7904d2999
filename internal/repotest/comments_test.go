package repotest

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// bracketed is a name in brackets, as go doc makes a link of. What stands before it tells it from
	// an index, and what follows from a link with a text of its own.
	bracketed = regexp.MustCompile(`(^|[\s(*])\[\*?([A-Za-z]\w*(?:\.[A-Za-z]\w*)*)\]([^(:\w]|$)`)

	// quoted is a name in backquotes.
	quoted = regexp.MustCompile("`([A-Za-z]\\w*(?:\\.[A-Za-z]\\w*)*)(?:\\(\\))?`")

	// mixed is a word with a capital letter behind a small one that it begins with. English has
	// none. What stands before it tells it from a part of a file name or a flag.
	mixed = regexp.MustCompile(`(?:^|[\s("'\[*&.])([A-Za-z][a-z]+[A-Z]\w*|[a-z][A-Z]\w*)\b`)

	// pointed is a name that a comment points to: see name.
	pointed = regexp.MustCompile(`\b[Ss]ee ([A-Za-z]\w*(?:\.[A-Za-z]\w*)*)(?:[.,;:)]|$)`)

	// fileName is the name of a file, with folders or without.
	fileName = regexp.MustCompile(`(?:^|[\s("'\[])((?:[\w.-]+/)*[a-z][\w-]+\.(?:go|md|c|h|s|tmpl))(?:[^.\w]|\.?$|\.\s)`)

	// mixedWord is mixed in a text.
	mixedWord = regexp.MustCompile(`[a-z][A-Z]`)

	// word is a name in the text of another language.
	word = regexp.MustCompile(`[A-Za-z_]\w*`)
)

// otherNames are names in comments that no code of this repository has.
var otherNames = []string{
	"eBPF", "MicroQuill", "OpenSSL", "OpenTelemetry", "PathError", "SmartHeap",
	"allUnsafe",       // of the Go compiler
	"panicX", "mustX", // of functions with such names
	"loop.tmpl", // in the first line of a generated file
}

// pronouns are what English sees.
var pronouns = []string{"it", "that", "which"}

// A commentOf is a comment of a Go file.
type commentOf struct {
	file string
	line int
	text string
}

// TestCommentsNameWhatExists looks for the names that comments of Go files have: those in brackets
// and in backquotes, words in mixed case, what a reader is to see, and files.
func TestCommentsNameWhatExists(t *testing.T) {
	t.Parallel()
	known, comments := map[string]bool{}, []commentOf{}
	for _, name := range otherNames {
		known[name] = true
	}
	for _, name := range files(t) {
		switch text := read(t, name); path.Ext(name) {
		case ".go":
			comments = append(comments, scan(name, text, known)...)
		case ".c", ".h", ".hpp", ".cpp", ".s", ".js", ".html", ".tmpl", ".yml", ".txtar":
			for _, w := range word.FindAllString(text, -1) {
				known[w] = true
			}
		}
	}
	n := &namer{t, known, ourSymbols(t), &standard{dir: filepath.Join(goEnv(t, "GOROOT"), "src"), names: map[string]map[string]bool{}}}
	for _, c := range comments {
		for _, name := range n.missing(c) {
			t.Errorf("%s:%d: nothing is called %s", c.file, c.line, name)
		}
	}
	// What is not there is found.
	for text, want := range map[string]string{
		" See [TestCommentsNameWhatExists], [runtime.AddCleanup] and [gcwatch.Next]; a[NoIndex].": "",
		" see scan. See scanner.Scanner, and imports_test.go or runtime/mcleanup.go.":             "",
		" [NoLink] is gone.":            "[NoLink]",
		" as [gcwatch.NoLink].":         "[gcwatch.NoLink]",
		" as [runtime.NoLink] has it":   "[runtime.NoLink]",
		" see nowhere.":                 "nowhere",
		" the flag `No" + "Quote` (or)": "`No" + "Quote`", // in two parts: names in texts are known
		" and no" + "Mixed, too":        "no" + "Mixed",
		" and No" + "Mixed, too":        "No" + "Mixed",
		" see the table in no-file.go.": "no-file.go",
	} {
		if got := strings.Join(n.missing(commentOf{"internal/repotest/comments_test.go", 1, text}), " "); got != want {
			t.Errorf("%q: found %q, want %q", text, got, want)
		}
	}
}

// A namer knows which names exist.
type namer struct {
	t     *testing.T
	known map[string]bool // names in code, and in code of a folder, with the folder before them
	ours  symbolTable
	std   *standard
}

// missing returns the names in a comment of what does not exist.
func (n *namer) missing(c commentOf) (list []string) {
	is := func(name string) bool { return n.known[name] || n.std.has("runtime", name) }
	last := func(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }
	for _, m := range bracketed.FindAllStringSubmatch(c.text, -1) {
		if !isLinked(n.ours, n.std, c.file, m[2]) {
			list = append(list, "["+m[2]+"]")
		}
	}
	for _, m := range quoted.FindAllStringSubmatch(c.text, -1) {
		if name := last(m[1]); ast.IsExported(name) && !is(name) {
			list = append(list, "`"+m[1]+"`")
		}
	}
	for _, m := range fileName.FindAllStringSubmatch(c.text, -1) {
		if !n.known[m[1]] && !isFile(n.t, n.std, path.Dir(c.file), m[1]) {
			list = append(list, m[1])
		}
	}
	for _, m := range pointed.FindAllStringSubmatch(c.text, -1) {
		name := last(m[1])
		here := n.known[path.Dir(c.file)+" "+name] || name != m[1] && n.known[name]
		if !here && !n.std.has("runtime", name) && !slices.Contains(pronouns, name) {
			list = append(list, m[1])
		}
	}
	for _, m := range mixed.FindAllStringSubmatch(c.text, -1) {
		if !is(m[1]) && !slices.ContainsFunc(list, func(l string) bool { return strings.Contains(l, m[1]) }) {
			list = append(list, m[1])
		}
	}
	return list
}

// scan returns the comments of a Go file, and adds the names in its code to known. Lines that are
// indented in a comment are code or a drawing, and are left out.
func scan(name, text string, known map[string]bool) (comments []commentOf) {
	var s scanner.Scanner
	fset := token.NewFileSet()
	file := fset.AddFile(name, -1, len(text))
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	for {
		pos, tok, lit := s.Scan()
		switch tok {
		case token.EOF:
			return comments
		case token.IDENT:
			known[lit] = true
			known[path.Dir(name)+" "+lit] = true
		case token.STRING:
			for _, w := range word.FindAllString(lit, -1) {
				if mixedWord.MatchString(w) {
					known[w] = true
				}
			}
		case token.COMMENT:
			line := fset.Position(pos).Line
			if after, ok := strings.CutPrefix(lit, "/*"); ok { // C, or a license
				for _, w := range word.FindAllString(after, -1) {
					known[w] = true
				}
				continue
			}
			if lit = strings.TrimPrefix(lit, "//"); !strings.HasPrefix(lit, "\t") && !strings.HasPrefix(lit, "go:") {
				comments = append(comments, commentOf{name, line, lit})
			}
		}
	}
}

// isLinked reports whether a name in brackets in a comment of a file exists. A name alone that
// begins with a small letter is none.
func isLinked(ours symbolTable, std *standard, file, name string) bool {
	pkg := path.Base(path.Dir(file))
	if pkg == "." {
		pkg = "cheap"
	}
	first, rest, dotted := strings.Cut(name, ".")
	if !dotted {
		return !ast.IsExported(name) || ours.has(pkg, name)
	}
	return ours.has(pkg, name) || ours.has(first, rest) || std.has(first, rest) || !ast.IsExported(rest)
}

// isFile reports whether a file that a comment in a folder names exists: in the folder or above or
// below it, by its path in the checkout, or in Go.
func isFile(t *testing.T, std *standard, dir, name string) bool {
	for _, at := range []string{dir, path.Dir(dir), "."} {
		if exists(t, path.Join(at, name)) {
			return true
		}
	}
	below := strings.TrimPrefix(dir+"/", "./")
	return std.hasFile(name) || !strings.Contains(name, "/") && slices.ContainsFunc(files(t), func(f string) bool {
		return strings.HasPrefix(f, below) && path.Base(f) == name
	})
}

// standard finds names of the standard library. It reads a package when it is first asked for.
type standard struct {
	dir   string
	names map[string]map[string]bool // by the last element of the package
}

// hasFile reports whether the sources of Go have a file: by its path, or in package runtime.
func (s *standard) hasFile(name string) bool {
	for _, dir := range []string{"", "runtime", "cmd"} {
		if _, err := os.Stat(filepath.Join(s.dir, dir, filepath.FromSlash(name))); err == nil {
			return true
		}
	}
	return false
}

// places are the packages that are not in a folder of their name.
var places = map[string]string{
	"atomic": "sync/atomic", "synctest": "testing/synctest", "pprof": "runtime/pprof", "debug": "runtime/debug", "metrics": "runtime/metrics",
	"http": "net/http", "httptest": "net/http/httptest", "bits": "math/bits", "json": "encoding/json", "ast": "go/ast", "types": "go/types", "exec": "os/exec",
}

func (s *standard) has(pkg, name string) bool {
	if s.names[pkg] == nil {
		dir := places[pkg]
		if dir == "" {
			dir = pkg
		}
		table := symbolTable{}
		entries, _ := os.ReadDir(filepath.Join(s.dir, filepath.FromSlash(dir))) // there is none: it has no names
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
				if f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(s.dir, dir, e.Name()), nil, parser.SkipObjectResolution); err == nil {
					table.addDecls(pkg, f)
				}
			}
		}
		if s.names[pkg] = table[pkg]; s.names[pkg] == nil {
			s.names[pkg] = map[string]bool{}
		}
	}
	return s.names[pkg][name]
}
