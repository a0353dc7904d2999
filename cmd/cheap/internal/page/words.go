package page

import (
	"strconv"
	"strings"

	"github.com/cheapgo/cheap/internal/figure"
)

// phrases say in words what the names of rows are made of. A # takes the number behind the name.
var phrases = map[string]string{
	// Ways to release.
	"addcleanup":      "runtime.AddCleanup",
	"bulk":            "256 blocks in one call of C",
	"close":           "own.Pool, closed",
	"defer":           "by hand, deferred",
	"finalizer":       "runtime.SetFinalizer",
	"finalizer-empty": "a finalizer that only counts",
	"finalizer-no-c":  "a finalizer without C",
	"go-new":          "Go arrays",
	"manual":          "by hand",
	"manual-object":   "by hand, in a Go object",
	"own":             "own.Pool",
	"own-bare":        "own.Pool, nothing to release",
	"own-batch":       "own.Pool, batches of #",
	"own-children":    "own.Pool, with a parent",
	"own-close":       "own.Pool, closed",
	"own-forget":      "own.Pool, forgotten",
	"own-group":       "own.Group",
	"own-inline":      "own.Pool, Options.Inline",
	"own-make":        "own.Pool, made in advance",
	"own-memory":      "own.Memory",
	"own-pace":        "own.Pool and pace",
	"plain":           "nothing to release",
	"alloc":           "nothing to release",
	"cold":            "cold start",
	"gc-off":          "collector off",
	"inline":          "Options.Inline",
	"many":            "300,000 objects",
	"parallel":        "in parallel",

	// Calls.
	"cgo":                     "cgo call",
	"cgo-noescape-nocallback": "cgo call, noescape, nocallback",
	"condition":               "a list of #, with conditions",
	"eight-cgo":               "cgo call, eight arguments",
	"eight-list":              "a list of #, eight arguments",
	"func-value":              "Go call by a func value",
	"inlined":                 "Go call, inlined",
	"json":                    "encoding/json, one integer",
	"list":                    "a list of #",
	"mutex":                   "mutex, lock and unlock",
	"reference":               "a list of #, with references",

	// Allocators.
	"arena":    "cheap.Arena",
	"calloc":   "C.calloc",
	"cgoalloc": "cgoalloc",
	"default":  "its default",
	"dropin":   "drop-in",
	"guarded":  "guarded",
	"heap":     "cheap.Heap",
	"jemalloc": "jemalloc",
	"libc":     "C.malloc",
	"local":    "cheap.Local",
	"malloc":   "C.malloc",
	"mimalloc": "mimalloc",
	"mmap":     "mmap",
	"modernc":  "modernc.org/memory",
	"native":   "malloc, called in C",
	"none":     "nothing shared",
	"sampled":  "sampled",
	"tcmalloc": "tcmalloc",

	// What allocates.
	"arena-temporary-data":      "two blocks, freed together",
	"four-parameters":           "four parameters",
	"gcc":                       "gcc",
	"grow-shrink":               "freed later",
	"handover":                  "handed over",
	"multilayer-grow-shrink":    "mixed sizes, freed later",
	"multilayer-temporary-data": "mixed sizes, freed at once",
	"replace":                   "replaced",
	"sqlite":                    "SQLite",
	"temporary-data":            "freed at once",
	"ten-parameters":            "ten parameters",

	// Strings.
	"cgoparam": "cgoparam",
	"cstring":  "C.CString",
	"go-bytes": "a Go slice, no copy",

	// Workloads of the literature, and the allocators of an experiment, under their own names.
	"alloc-test":    "alloc-test",
	"cache-scratch": "cache-scratch",
	"cheap":         "cheap.Arena",
	"glibc-simple":  "glibc-simple",
	"large":         "large blocks",
	"larson":        "larson",
	"mixture":       "mixture",
	"mstress":       "mstress",
	"rptest":        "rptest",
	"sawtooth":      "sawtooth",
	"sh6bench":      "sh6bench",
	"xmalloc":       "xmalloc",
}

// counted says what the number at the end of a row's name is of, where Table.Over does not.
var counted = map[string]string{"strings": "# bytes", "survivors": "one in # lives on"}

// Words returns the name of a row of a table in words, and the parts of the name that have none, which
// stay as they are. Over is that of the table.
func Words(table, over, row string) (words string, unknown []string) {
	var all []string
	for rest := strings.Split(row, "-"); len(rest) > 0; {
		n := len(rest)
		for n > 1 && phrases[strings.Join(rest[:n], "-")] == "" {
			n--
		}
		count, isNumber := number(rest[0])
		phrase := phrases[strings.Join(rest[:n], "-")]
		switch {
		case phrase != "":
		case isNumber && counted[table] != "":
			phrase = strings.Replace(counted[table], "#", count, 1)
		case isNumber:
			phrase = strings.TrimSpace(count + " " + over)
		default:
			phrase = rest[0]
			unknown = append(unknown, phrase)
		}
		rest = rest[n:]
		if strings.Contains(phrase, " of #") {
			of := ""
			if len(rest) > 0 {
				if count, ok := number(rest[0]); ok {
					of, rest = " of "+count, rest[1:]
				}
			}
			phrase = strings.Replace(phrase, " of #", of, 1)
		}
		all = append(all, phrase)
	}
	return strings.Join(all, ", "), unknown
}

// number reads a part of a name that is a number, and writes it for people.
func number(part string) (text string, ok bool) {
	n, err := strconv.Atoi(part)
	return figure.Thousands(n), err == nil
}
