package explain

import (
	_ "embed"
	"fmt"
	"path"
	"strings"
	"sync"
)

// A mechanism is what a name stands for, in one dimension.
type mechanism string

// The mechanisms of the table of names. Report has a share for each of the first six, and one
// for all that follow.
const (
	mechC          mechanism = "c"
	mechCrossing   mechanism = "crossing"
	mechCallback   mechanism = "callback"
	mechAlloc      mechanism = "alloc"
	mechLock       mechanism = "lock"
	mechCollection mechanism = "collection"

	mechGo           mechanism = "go"
	mechRecord       mechanism = "record"
	mechScheduler    mechanism = "scheduler"
	mechSyscall      mechanism = "syscall"
	mechStack        mechanism = "stack"
	mechProfiler     mechanism = "profiler"
	mechUnclassified mechanism = "unclassified"

	// mechTransition is in the table only: a frame further from the leaf says of what.
	mechTransition mechanism = "transition"
)

// A purpose is what a name stands for, in the other dimension.
type purpose string

// The purposes.
const (
	purposeStrings  purpose = "strings"
	purposeRegister purpose = "register"
	purposeRelease  purpose = "release"
	purposeRest     purpose = "rest"
)

// A name is a line of the table.
type name struct {
	mechanism mechanism // "" if it does not decide
	purpose   purpose   // "" if it does not decide
	first     string    // the versions of Go that have it
	last      string
	pattern   string
}

//go:embed names.txt
var namesText string

// names finds the lines of the table: exact ones by their name, and those with an asterisk by
// their beginning.
var names = mustParseNames(namesText)

type nameTable struct {
	all    []name
	exact  map[string]*name
	prefix []*name
	found  sync.Map // what find has returned, by the function: a profile has the same ones often
}

func mustParseNames(text string) *nameTable {
	t := &nameTable{exact: map[string]*name{}}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if len(fields) != 4 {
			panic(fmt.Sprintf("names.txt: %q has %d fields", line, len(fields)))
		}
		n := name{pattern: fields[3]}
		if fields[0] != "-" {
			n.mechanism = mechanism(fields[0])
		}
		if fields[1] != "-" {
			n.purpose = purpose(fields[1])
		}
		first, last, found := strings.Cut(fields[2], "-")
		if n.first, n.last = first, last; !found {
			n.last = first
		}
		t.all = append(t.all, n)
	}
	for i := range t.all {
		n := &t.all[i]
		if beginning, found := strings.CutSuffix(n.pattern, "*"); found {
			n.pattern = beginning
			t.prefix = append(t.prefix, n)
		} else {
			t.exact[n.pattern] = n
		}
	}
	return t
}

// find returns the line for a function, nil if there is none. The function has no type
// parameters.
func (t *nameTable) find(function string) *name {
	if n, ok := t.found.Load(function); ok {
		return n.(*name)
	}
	n := t.search(function)
	t.found.Store(function, n)
	return n
}

func (t *nameTable) search(function string) *name {
	if n := t.exact[function]; n != nil {
		return n
	}
	local := ""
	if at := strings.LastIndex(function, "._C"); at >= 0 { // _Cfunc_, _C2func_
		local = function[at+1:]
	} else if at := strings.LastIndex(function, "._cgo"); at >= 0 {
		local = function[at+1:]
	}
	if local != "" {
		if n := t.exact[local]; n != nil {
			return n
		}
	}
	for _, n := range t.prefix {
		if strings.HasPrefix(function, n.pattern) || local != "" && strings.HasPrefix(local, n.pattern) {
			return n
		}
	}
	return nil
}

// withoutTypes removes the type parameters from the name of a function.
func withoutTypes(function string) string {
	for {
		from := strings.IndexByte(function, '[')
		if from < 0 {
			return function
		}
		depth, to := 0, len(function)
		for i := from; i < len(function); i++ {
			if function[i] == '[' {
				depth++
			} else if function[i] == ']' {
				if depth--; depth == 0 {
					to = i + 1
					break
				}
			}
		}
		function = function[:from] + function[to:]
	}
}

// packageOf returns the import path of the package of a function, "" if the name has none.
func packageOf(function string) string {
	dir, base := path.Split(function)
	pkg, _, found := strings.Cut(base, ".")
	if !found {
		return ""
	}
	return dir + pkg
}

// isRuntime reports whether a function belongs to Go's runtime, so that it is part of what the
// function that calls it does.
func isRuntime(f frame) bool {
	switch pkg := packageOf(f.function); pkg {
	case "":
		return strings.HasSuffix(f.file, ".s") || f.function == "gogo" || f.function == "crosscall2"
	case "runtime", "runtime/cgo", "internal/abi", "internal/bytealg", "internal/chacha8rand", "internal/cpu",
		"internal/goarch", "internal/race", "internal/sync", "sync/atomic":
		return true
	default:
		return strings.HasPrefix(pkg, "internal/runtime/") || strings.HasPrefix(pkg, "runtime/internal/")
	}
}
