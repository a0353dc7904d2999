package own

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/watch/leaks"
)

// TestLeaksLevels sets levels in all ways, before and after pools are made.
func TestLeaksLevels(t *testing.T) {
	named := func(name string) *Pool {
		o := nothing()
		o.Name = name
		return NewPool(o)
	}
	a, b := named("levels.a"), named("levels.b")
	m := NewMemory(nil, MemoryOptions{Name: "levels/m"})
	level := func(p *Pool, want LeakLevel) {
		t.Helper()
		if got := LeakLevel(p.spec.Level()); got != want {
			t.Errorf("%s has the level %v, want %v", p.spec.Name, got, want)
		}
	}
	defer SetLeakLevel("*", LeaksOff)
	defer SetLeakLevel("levels.*", LeaksOff)
	level(a, LeaksOff)
	SetLeakLevel("levels.*", LeaksSampled)
	level(a, LeaksSampled)
	level(m.blocks.pool, LeaksOff)
	SetLeakLevel("levels.a", LeaksAll)
	level(a, LeaksAll)
	level(b, LeaksSampled)
	level(named("levels.c"), LeaksSampled)
	SetLeakLevel("*", LeaksAdvanced) // also matches a name with a slash
	level(a, LeaksAdvanced)
	level(m.groups.pool, LeaksAdvanced)
	SetLeakLevel("levels/m", LeaksOff)
	level(m.groups.pool, LeaksOff)
	SetLeakLevel("levels.b", LeaksOff)
	level(b, LeaksOff)
	level(a, LeaksAdvanced)
	_, undo := leaks.Raise(leaks.All)
	_, again := leaks.Raise(leaks.Sampled)
	level(b, LeaksAll)
	undo()
	level(b, LeaksSampled)
	level(a, LeaksAdvanced)
	again()
	level(b, LeaksOff)
	mustMisuse(t, "own.SetLeakLevel", func() { SetLeakLevel("[", LeaksAll) }, "malformed")
	mustMisuse(t, "own.SetLeakLevel", func() { SetLeakLevel("*", 9) }, "no level 9")
	mustMisuse(t, "own.SetLeakLevel", func() { SetLeakLevel("levels.a", 4) }, "no level 4")
}

// early is a pool of a package variable, which is made before main.
var early = NewPool(Options{Name: "early.Pool", Release: func(any, []uintptr) error { return nil }})

// TestLeaksEnvironment sets CHEAP_LEAKS in a child process.
func TestLeaksEnvironment(t *testing.T) {
	const mistake = "cheap: own: CHEAP_LEAKS is ignored: "
	for env, want := range map[string]string{
		"":                             "off off",
		"all":                          "all all",
		"early.*=sampled":              "sampled off",
		"early.*=off, *=advanced":      "off advanced",
		"*=advanced,early.*=off":       "advanced advanced",
		"late.Pool=all,e*=sampled,":    "sampled all",
		"early.*=often":                mistake + `"often" is not off, sampled, advanced or all` + "\noff off",
		"[=all":                        mistake + `"[": syntax error in pattern` + "\noff off",
		"early.Pool=all,late.Pool=bad": mistake + `"bad" is not off, sampled, advanced or all` + "\noff off",
	} {
		out, status := testchild.Run(t, func() {
			late := nothing()
			late.Name = "late.Pool"
			p := NewPool(late)
			fmt.Println(LeakLevel(early.spec.Level()), LeakLevel(p.spec.Level()))
		}, "CHEAP_LEAKS="+env)
		if strings.TrimSpace(out) != want || status != 0 {
			t.Errorf("%q: status %d, %q, want %q", env, status, out, want)
		}
	}
}

// TestLeaksLevelChanges sets the level while a batch is open, also on another P. Owners of
// before have no stack, and all of those made later have one.
func TestLeaksLevelChanges(t *testing.T) {
	w := newWorld(t, 1000)
	p := w.pool(Options{})
	defer SetLeakLevel(p.spec.Name, LeaksOff)
	info := poolInfo(t, p)
	held := make([]*thing, 0, 200)
	for range 100 {
		held = append(held, bakery(t, w, p))
	}
	done := make(chan bool)
	go func() { // most likely on another P
		SetLeakLevel(p.spec.Name, LeaksAll)
		done <- true
	}()
	<-done
	for range 100 {
		held = append(held, butchery(t, w, p))
	}
	sites := info.sites()
	if len(sites) != 2 || len(sitesIn(sites, "own.butchery")) != 1 || len(sitesIn(sites, "own.bakery")) != 0 {
		t.Fatalf("%+v", sites)
	}
	for _, s := range sites {
		if s.Live != 100 || s.Bytes != 1000 || s.PCs == nil && s.Samples+s.Made != 0 || s.PCs != nil && (s.Samples != 100 || s.Made != 100) {
			t.Errorf("%+v", s)
		}
	}
	SetLeakLevel(p.spec.Name, LeaksOff)
	bakery(t, w, p)
	if s := sitesIn(info.sites(), "own.bakery"); s != nil {
		t.Errorf("recorded while the level is off: %+v", s)
	}
	runtime.KeepAlive(held)
}
