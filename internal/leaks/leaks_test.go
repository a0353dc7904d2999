package leaks

import "testing"

// A counter counts the changes of levels.
type counter struct{ changes int }

func (c *counter) LevelsChanged() { c.changes++ }
func (c *counter) Sites() []Site  { return nil }

// TestRules sets rules whose patterns overlap.
func TestRules(t *testing.T) {
	var told counter
	SetPools(&told)
	defer pools.Store(nil)
	is := func(name string, own Level, number uint64, want Level) {
		t.Helper()
		if got := Of(name, own, number); got != want {
			t.Errorf("%s is at %v, want %v", name, got, want)
		}
	}
	is("a.B", Off, 0, Off)
	Set("a.*", Sampled)
	is("a.B", Off, 0, Sampled)
	is("b.B", Off, 0, Off)
	n := Serial()
	is("a.B", All, n, All)
	Set("*.B", Advanced)
	is("a.B", All, n, Advanced)
	is("a.C", All, n, All)
	is("a.C", All, 0, Sampled)
	Set("a.*", Off) // the same pattern again
	is("a.B", Off, 0, Off)
	if len(rules) != 2 {
		t.Errorf("%d rules of 2 patterns", len(rules))
	}
	SetBase(Advanced)
	is("c.D", Off, 0, Advanced)
	is("a.B", Off, 0, Off)
	is("c.D", Off, n, Off)
	SetBase(Off)
	_, undo := Raise(Sampled)
	is("c/d", Off, 0, Sampled)
	undo()
	is("c/d", Off, 0, Off)
	if err := SetAll("c/*=all,*=sampled"); err != nil {
		t.Fatal(err)
	}
	is("c/d", Off, 0, All)
	is("e/f", Off, 0, Sampled)
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
