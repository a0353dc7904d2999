package repotest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ranBy has the commands of documents that TestCommands cannot parse, and the test that runs each.
var ranBy = map[string]string{
	"curl -s localhost:6060/debug/cheap/resident.txt":                                    "TestDocument",
	"curl -s localhost:6060/debug/cheap/libraries.txt":                                   "TestDocument",
	"curl -s localhost:6060/debug/cheap/growth.txt":                                      "TestDocument",
	"go tool pprof -top localhost:6060/debug/pprof/heap":                                 "TestDocument",
	"go tool pprof -top -cum -show='^main' 'localhost:6060/debug/cheap/cmem?seconds=10'": "TestDocument",

	"cp ../cheap/examples/first/*.go .":                      "TestCheckout",
	"go mod init example.com/hello":                          "TestCheckout",
	"go get github.com/cheapgo/cheap@latest":                 "TestRelease",
	"go mod edit -replace=github.com/cheapgo/cheap=../cheap": "TestCheckout",
	"go mod tidy":                 "TestCheckout",
	"seq 100000 | go run . 12345": "TestCheckout",

	"seq 100000 | GOWORK=off go run . 12345": "TestProgram",

	"go mod edit -require=github.com/cheapgo/cheap/x/cgoalloc@v0.0.0 -replace=github.com/cheapgo/cheap/x/cgoalloc=../cheap/x/cgoalloc -replace=github.com/cheapgo/cheap=../cheap": "TestDropIns",
	"go mod edit -replace=github.com/CannibalVox/cgoalloc=../cheap/x/cgoalloc -replace=github.com/cheapgo/cheap=../cheap":                                                         "TestDropIns",
}

// Flags of the go command that documents use, and whether a value follows one that has no "=".
var goFlags = map[string]bool{
	"asan": false, "c": false, "json": false, "msan": false, "race": false, "short": false, "v": false,
	"bench": true, "benchtime": true, "count": true, "cpu": true, "cpuprofile": true, "exec": true, "fuzz": true, "fuzztime": true, "gcflags": true,
	"modfile": true, "o": true, "p": true, "parallel": true, "run": true, "skip": true, "tags": true, "timeout": true, "vettool": true,
}

// commandLike is a line of text, or code within a line, that is a command.
var commandLike = regexp.MustCompile(`^(?:[A-Z_]+=\S* )*(?:go (?:build|install|run|test|vet) \S|cheap [a-z]+ \S|\.ci/[a-z]+(?: |$))`)

// TestCommands reads each command that a document shows. The folders, packages and tests that it
// names exist, its flags are declared, and stand where the go command passes them on.
func TestCommands(t *testing.T) {
	t.Parallel()
	c := commands{t: t, declared: declaredTests(t), flags: map[string][]string{}}
	shown := map[string]bool{}
	for _, name := range files(t) {
		if path.Ext(name) != ".md" || name == "CHANGELOG.md" { // it has commands that are gone
			continue
		}
		c.dir = path.Dir(name)
		if c.dir == "docs" {
			c.dir = "."
		}
		d := parseDocument(t, name)
		for _, b := range d.blocks {
			for i, line := range strings.Split(b.text, "\n") {
				line, _, _ = strings.Cut(strings.TrimSpace(line), "  ") // what is beside a command
				line, _, _ = strings.Cut(line, " #")
				if b.lang == "sh" && line != "" || b.lang == "text" && commandLike.MatchString(line) {
					c.where, shown[line] = name+":"+strconv.Itoa(b.line+1+i), true
					c.check(line)
				}
			}
		}
		for _, s := range d.spans {
			if commandLike.MatchString(s.text) {
				c.where = name + ":" + strconv.Itoa(s.line)
				c.check(s.text)
			}
		}
	}
	for line, test := range ranBy {
		if !shown[line] {
			t.Errorf("no document shows %q", line)
		}
		if !c.declared[test] {
			t.Errorf("%s, which runs %q, is no test", test, line)
		}
	}
}

// commands checks the commands of a document.
type commands struct {
	t        *testing.T
	declared map[string]bool     // tests, benchmarks and fuzz targets
	flags    map[string][]string // by folder, the flags that its files declare
	dir      string              // the folder that the next command runs in
	where    string              // file and line
}

func (c *commands) errorf(format string, args ...any) {
	c.t.Helper()
	c.t.Errorf("%s: "+format, append([]any{c.where}, args...)...)
}

// check checks a line. It may be a pipe of two commands, of which the second reads.
func (c *commands) check(line string) {
	c.t.Helper()
	if ranBy[line] != "" {
		return
	}
	for part := range strings.SplitSeq(line, " && ") {
		for command := range strings.SplitSeq(part, " | ") {
			command, _, _ = strings.Cut(command, " <")
			command, _, _ = strings.Cut(command, " >")
			words := splitWords(command)
			for len(words) > 1 && regexp.MustCompile(`^[A-Z_]+=`).MatchString(words[0]) {
				words = words[1:]
			}
			c.command(command, words)
		}
	}
}

func (c *commands) command(line string, words []string) {
	c.t.Helper()
	switch first := words[0]; {
	case first == "cd":
		c.dir = words[1]
		if !exists(c.t, c.dir) {
			c.errorf("there is no folder %s", c.dir)
		}
	case strings.HasPrefix(first, ".ci/"):
		if !exists(c.t, first) {
			c.errorf("there is no script %s", first)
			return
		}
		script := read(c.t, first)
		for _, step := range words[1:] {
			if !strings.Contains(script, "\nstep_"+step+"()") {
				c.errorf("%s has no step %s", first, step)
			}
		}
	case first == "cheap" && len(words) > 1:
		c.program("cmd/cheap", words[1:])
	case first == "go" && len(words) > 1 && slices.Contains([]string{"build", "install", "run", "test", "vet"}, words[1]):
		c.goCommand(words[1], words[2:])
	case first == "go" && slices.Equal(words[1:2], []string{"tool"}) && slices.Contains(words, "staticcheck"):
	default:
		c.errorf("no test runs or reads %q", line)
	}
}

// goCommand checks the arguments of go build, install, run, test and vet.
func (c *commands) goCommand(verb string, args []string) {
	c.t.Helper()
	var patterns []string // of -run, -bench, -fuzz
	flag := func(args []string) (rest []string, ours string) {
		name, value, hasValue := strings.Cut(strings.TrimLeft(args[0], "-"), "=")
		takes, known := goFlags[name]
		if !known {
			return args[1:], name
		}
		if takes && !hasValue && len(args) > 1 {
			value, args = args[1], args[1:]
		}
		if verb == "test" && (name == "run" || name == "bench" || name == "fuzz") {
			patterns = append(patterns, value)
		}
		return args[1:], ""
	}
	var early []string // flags that are not the go command's, before any package
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		var ours string
		if args, ours = flag(args); ours == "" {
			continue
		}
		if early = append(early, ours); slices.ContainsFunc(args, isPackage) {
			c.errorf("go %s takes what is behind -%s, which is not its own, for arguments of the program: name the packages before it", verb, ours)
			return
		}
	}
	var folders []string
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		arg := args[0]
		args = args[1:]
		if arg != "work" && !strings.HasPrefix(arg, "$") {
			folder := path.Join(c.dir, strings.TrimSuffix(arg, "/..."))
			if strings.HasPrefix(arg, "../") || !isPackage(arg) && verb != "run" {
				continue // of the reader's own program
			}
			if !exists(c.t, folder) && exists(c.t, arg) {
				folder = path.Clean(arg) // a document of a folder also speaks of the whole tree
			} else if !exists(c.t, folder) && !isExample(arg) {
				c.errorf("there is no package %s", arg)
				return
			}
			folders = append(folders, folder)
		}
		if verb == "run" {
			c.program(folders[0], args)
			return
		}
	}
	if len(folders) == 0 {
		folders = []string{c.dir}
	}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		var ours string
		if args, ours = flag(args); ours != "" {
			c.declaredFlag(folders, ours)
		}
	}
	for _, ours := range early {
		c.declaredFlag(folders, ours)
	}
	for _, p := range patterns {
		for alternative := range strings.SplitSeq(p, "|") {
			alternative, _, _ = strings.Cut(alternative, "/")
			re, err := regexp.Compile(alternative)
			if err != nil {
				c.errorf("%v", err)
			} else if alternative != "^$" && !c.matches(re) {
				c.errorf("no test, benchmark or fuzz target has a name with %s", alternative)
			}
		}
	}
}

func isPackage(arg string) bool {
	return arg == "." || arg == "work" || strings.HasPrefix(arg, "./")
}

// isExample reports whether a package stands for one of the reader's.
func isExample(arg string) bool {
	return slices.Contains([]string{"./cmd/prog", "./server"}, arg)
}

// program checks the arguments of a program of the tree. What follows an argument that is no flag may
// be for another program.
func (c *commands) program(folder string, args []string) {
	c.t.Helper()
	if folder == "cmd/cheap" && len(args) > 0 {
		if !slices.Contains([]string{"bench", "explain", "postmortem", "record", "replay", "top", "version"}, args[0]) {
			c.errorf("cheap has no command %s", args[0])
		}
		args = args[1:]
	}
	for i, arg := range args {
		if i > 0 && isExample(args[i-1]) {
			return
		}
		if name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "="); strings.HasPrefix(arg, "-") && name != "h" {
			c.declaredFlag([]string{folder}, name)
		}
	}
}

// declaredFlag looks for the declaration of a flag in the files of folders.
func (c *commands) declaredFlag(folders []string, name string) {
	c.t.Helper()
	for _, folder := range folders {
		if _, ok := c.flags[folder]; !ok {
			c.flags[folder] = flagsOf(c.t, folder)
		}
		if slices.Contains(c.flags[folder], name) {
			return
		}
	}
	c.errorf("%s declares no flag -%s", strings.Join(folders, " "), name)
}

func (c *commands) matches(re *regexp.Regexp) bool {
	for name := range c.declared {
		if re.MatchString(name) {
			return true
		}
	}
	return false
}

// flagsOf returns the names that calls such as flag.Int declare in the Go files of a folder and of
// those below it.
func flagsOf(t *testing.T, folder string) []string {
	t.Helper()
	declares := regexp.MustCompile(`^(?:Bool|Int|Int64|Uint|Uint64|String|Float64|Duration|Func|BoolFunc|Text)?(?:Var)?$`)
	names := []string{}
	for _, file := range files(t) {
		if path.Ext(file) != ".go" || folder != "." && !strings.HasPrefix(file, folder+"/") || folder == "." && strings.Contains(file, "/") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root(t), filepath.FromSlash(file)), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if sel, ok := call.Fun.(*ast.SelectorExpr); ok && declares.MatchString(sel.Sel.Name) {
				for _, arg := range call.Args {
					if lit, ok := arg.(*ast.BasicLit); ok && lit.Kind == token.STRING {
						name, err := strconv.Unquote(lit.Value)
						if err != nil {
							t.Fatal(err)
						}
						names = append(names, name)
						break // the next one is its text
					}
				}
			}
			return true
		})
	}
	return names
}

var declaration = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz|Example)\w*)\(`)

// declaredTests returns the tests, benchmarks, fuzz targets and examples of the tree.
func declaredTests(t *testing.T) map[string]bool {
	t.Helper()
	declared := map[string]bool{}
	for _, name := range files(t) {
		if strings.HasSuffix(name, "_test.go") {
			for _, m := range declaration.FindAllStringSubmatch(read(t, name), -1) {
				declared[m[1]] = true
			}
		}
	}
	return declared
}

// splitWords splits a command as a shell does, where it has quotes and no other syntax.
func splitWords(line string) []string {
	var words []string
	var word strings.Builder
	quote, some := rune(0), false
	for _, r := range line {
		switch {
		case quote == 0 && (r == '\'' || r == '"'):
			quote, some = r, true
		case r == quote:
			quote = 0
		case r == ' ' && quote == 0:
			if some {
				words = append(words, word.String())
			}
			word.Reset()
			some = false
		default:
			word.WriteRune(r)
			some = true
		}
	}
	if some {
		words = append(words, word.String())
	}
	return words
}
