package explain

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/cheapgo/cheap/cmd/cheap/internal/getter"
	"github.com/cheapgo/cheap/internal/figure"
)

// A FieldCall is a function of C that only reads a field, as the machine code of the program says.
type FieldCall struct {
	Callee string `json:"callee"`
	Type   string `json:"type"`  // of the argument, as Go code has it: C.struct_item
	Field  string `json:"field"` // of that, or of what it points to: next.number

	Union bool `json:"union,omitempty"` // Go has the bytes only, and Field has the names of C
}

// getters are the functions of C that only read a field, by the package that calls them and their name.
type getters map[[2]string]getter.Field

// findGetters looks for those among the call sites that take a share of the processor time. The program
// has to be on this machine, as it was when the profile was taken.
func (r *Report) findGetters(p *profile.Profile) getters {
	wrappers := map[[2]string]string{}
	for _, f := range p.Function {
		if pkg := packageOf(f.Name); isWrapper(f.Name) && !isOurs(pkg) {
			_, local, _ := cutLast(f.Name, "._Cfunc_")
			wrappers[[2]string{pkg, "C." + local}] = f.Name
		}
	}
	shares := map[[2]string]float64{}
	for _, s := range r.Sites {
		if key := [2]string{packageOf(s.Function), s.Callee}; wrappers[key] != "" && s.Purpose != Strings {
			shares[key] += s.Mechanisms[mechanismIndex(mechCrossing)]
		}
	}
	found := getters{}
	var program *getter.Program
	for key, share := range shares {
		if share < leastAdvice/4 {
			continue
		}
		if program == nil {
			if program = openProgram(p); program == nil {
				return found
			}
			defer program.Close()
		}
		if field, err := program.Find(wrappers[key]); err == nil {
			found[key] = field
		}
	}
	return found
}

// openProgram opens the program of a profile, nil if that is not here any more.
func openProgram(p *profile.Profile) *getter.Program {
	if len(p.Mapping) == 0 {
		return nil
	}
	var files []string
	for _, m := range p.Mapping {
		info, err := os.Stat(m.File)
		if err != nil || !info.Mode().IsRegular() || !filepath.IsAbs(m.File) {
			if len(files) == 0 {
				return nil // the first is the program
			}
			continue
		}
		if !slices.Contains(files, m.File) {
			files = append(files, m.File)
		}
	}
	program, err := getter.Open(files[0], files[1:])
	if err != nil {
		return nil
	}
	if was, is := p.Mapping[0].BuildID, program.BuildID(); was != "" && was != is {
		program.Close()
		return nil
	}
	return program
}

// of returns the field that a call site reads, and whether it does only that.
func (g getters) of(s Site) (getter.Field, bool) {
	f, found := g[[2]string{packageOf(s.Function), s.Callee}]
	return f, found
}

// adviseGetters is about functions that only read fields, by the type that has the fields.
func (r *Report) adviseGetters(g getters) {
	type use struct {
		crossing float64
		of       map[FieldCall]float64
	}
	uses := map[string]*use{}
	for _, s := range r.Sites {
		f, found := g.of(s)
		if !found {
			continue
		}
		u := uses[f.Type]
		if u == nil {
			u = &use{of: map[FieldCall]float64{}}
			uses[f.Type] = u
		}
		crossing := s.Mechanisms[mechanismIndex(mechCrossing)]
		u.crossing += crossing
		u.of[FieldCall{s.Callee, f.Type, f.Path, f.Union}] += crossing
	}
	for name, u := range uses {
		var list []FieldCall
		for call := range u.of {
			list = append(list, call)
		}
		slices.SortFunc(list, func(a, b FieldCall) int {
			return cmp.Or(cmp.Compare(u.of[b], u.of[a]), cmp.Compare(a.Callee, b.Callee))
		})
		var callees, parts []string
		for i, call := range list {
			callees = append(callees, call.Callee)
			if i < fieldsShown {
				part := call.Callee + " reads " + call.Field
				if call.Union {
					part += " (of a union, of which Go has the bytes)"
				}
				parts = append(parts, part)
			}
		}
		if more := len(list) - len(parts); more > 0 {
			parts = append(parts, "and so do "+figure.Plural(more, "other function"))
		}
		r.Advice = append(r.Advice, Advice{
			Site: fmt.Sprintf("%s: fields of %s", shortNames(callees), name), Now: u.crossing, Fields: list, Link: "docs/guide.md#go-memory-directly",
			Text:  strings.Join(parts, ", ") + ", and nothing else, as its machine code says. Go knows the type: read the field from Go, without a call. If another thread writes it meanwhile, leave it to C: an atomic or volatile read may look the same.",
			Basis: "the crossings; what the read itself takes, stays",
		})
	}
}

// fieldsShown is how many functions a text names with their fields.
const fieldsShown = 6
