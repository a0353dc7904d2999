package leaks

import (
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// A counter counts the changes of levels.
type counter struct{ changes int }

func (c *counter) LevelsChanged() { c.changes++ }
func (c *counter) Sites() []Site  { return nil }
func (c *counter) All() []Pool    { return nil }

// TestRules sets rules whose patterns overlap.
func TestRules(t *testing.T) {
	var told counter
	SetPools(&told)
	defer pools.Store(nil)
	is := func(name string, want Level) {
		t.Helper()
		if got := Of(name); got != want {
			t.Errorf("%s is at %v, want %v", name, got, want)
		}
	}
	is("a.B", Off)
	Set("a.*", Sampled)
	is("a.B", Sampled)
	is("b.B", Off)
	Set("*.B", Advanced)
	is("a.C", Sampled)
	Set("a.*", Off) // the same pattern again
	is("a.B", Off)
	if len(rules) != 2 {
		t.Errorf("%d rules of 2 patterns", len(rules))
	}
	SetBase(Advanced)
	is("c.D", Advanced)
	is("a.B", Off)
	SetBase(Off)
	_, undo := Raise(Sampled)
	is("c/d", Sampled)
	undo()
	is("c/d", Off)
	testcall.Must(t, SetAll("c/*=all,*=sampled"))
	is("c/d", All)
	is("e/f", Sampled)
	before := len(rules)
	if Set("[", All) == nil || SetAll("*=off,[=all") == nil || SetAll("x=y") == nil || len(rules) != before {
		t.Error("a mistake has set a rule")
	}
	if told.changes != 9 {
		t.Errorf("told %d times", told.changes)
	}
	if Level(7).String() != "level 7" || All.String() != "all" {
		t.Error(Level(7), All)
	}
	rules = nil
}
