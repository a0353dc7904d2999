package explain

import (
	"cmp"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// A node is a function of the flame graph, under those that have called it. Its children are
// the functions that it calls, and the mechanisms of the samples in itself.
type node struct {
	Name     string
	Share    float64 // of the processor time, children included
	Mix      []float64
	Children []*node
}

// newFlame makes the flame graph. It has the functions of the program, and the runtime's only
// where the table of names knows them; at the top there is the mechanism.
func newFlame(p *profile.Profile, of func(sample int) (share float64, c class, g *group)) *node {
	root := newNode("all")
	for i, s := range p.Sample {
		share, c, g := of(i)
		if g == nil {
			continue
		}
		path := flamePath(frames(s))
		parts := []struct {
			mechanism mechanism
			part      float64
		}{{c.mechanism, 1}}
		if c.flat && g.flat > 0 {
			parts[0].part = g.c.Share / g.flat
			parts = append(parts, parts[0], parts[0])
			parts[1].mechanism, parts[1].part = mechCrossing, g.call/g.flat
			parts[2].mechanism, parts[2].part = mechCallback, g.callback/g.flat
		}
		for _, part := range parts {
			if part.part <= 0 {
				continue
			}
			at := mechanismIndex(part.mechanism)
			n := root
			n.add(at, share*part.part)
			for _, name := range path {
				n = n.child(name)
				n.add(at, share*part.part)
			}
		}
	}
	root.sort()
	return root
}

func newNode(name string) *node { return &node{Name: name, Mix: make([]float64, len(mechanismNames))} }

func (n *node) add(mechanism int, share float64) {
	n.Share += share
	n.Mix[mechanism] += share
}

func (n *node) child(name string) *node {
	for _, c := range n.Children {
		if c.Name == name {
			return c
		}
	}
	c := newNode(name)
	n.Children = append(n.Children, c)
	return c
}

func (n *node) sort() {
	slices.SortFunc(n.Children, func(a, b *node) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.Name, b.Name))
	})
	for _, c := range n.Children {
		c.sort()
	}
}

// flamePath returns the functions of a stack from the root, without what says nothing.
func flamePath(stack []frame) []string {
	var path []string
	for _, f := range slices.Backward(stack) {
		name := f.function
		switch {
		case name == "" || name == "runtime.goexit" || name == "runtime.main" || name == "runtime.systemstack":
			continue
		case !f.isC && isRuntime(f) && lookup(f) == nil:
			continue
		}
		if at := strings.Index(name, "._Cfunc_"); at >= 0 {
			name = "C." + name[at+len("._Cfunc_"):]
		}
		if len(path) == 0 || path[len(path)-1] != name {
			path = append(path, name)
		}
	}
	return path
}
