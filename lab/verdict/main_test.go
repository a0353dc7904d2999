//go:build linux && cgo

package main

import (
	"regexp"
	"testing"
)

func TestTable(t *testing.T) {
	names, sick := map[string]bool{}, 0
	for _, p := range table {
		if names[p.name] {
			t.Errorf("two programs are called %s", p.name)
		}
		names[p.name] = true
		if p.truth == "" || (p.run == nil) == (p.real == "") {
			t.Errorf("%s: nothing is true of it, or it has no program, or two", p.name)
		}
		for _, pattern := range []string{p.want.must, p.want.not, p.want.may, p.must, p.not, p.may} {
			if _, err := regexp.Compile(pattern); err != nil {
				t.Errorf("%s: %v", p.name, err)
			}
		}
		if p.want != healthy {
			sick++
		}
		if wrong := p.judge(""); wrong == "" {
			t.Errorf("%s: no verdict is right", p.name)
		}
		if nothing := p.judge("nothing stands out; of 9 MiB the most is the program"); (nothing == "") != (p.want == healthy) {
			t.Errorf("%s: that nothing stands out is judged %q", p.name, nothing)
		}
	}
	if healthy := len(table) - sick; sick < 40 || healthy < 20 {
		t.Errorf("%d programs have something planted, and %d are healthy", sick, healthy)
	}
}

func TestJudge(t *testing.T) {
	leak := planted{want: line("bad|caller"), must: `main\.bad\b`}
	for _, c := range []struct {
		p        planted
		sentence string
		right    bool
	}{
		{leak, "C memory grew until the end at main.bad a.go:1, by 9 MiB", true},
		{leak, "C memory grew until the end at main.good a.go:1, by 9 MiB", false},
		{leak, "C memory grew until the end at main.bad a.go:1 and main.good a.go:2", false},
		{leak, "C memory grew until the end at main.badly a.go:1", false},
		{leak, "C memory grew until the end", false},
		{leak, "40 MiB are free in arenas. To do: bound them; main.bad", false},
		{planted{want: healthy}, "Nothing stands out; of 9 MiB the most is C, at main.fill", true},
		{planted{want: healthy}, "C memory grew until the end at main.fill", false},
		{planted{want: cause("arenas"), not: "trim"}, "9 MiB are free in arenas", true},
		{planted{want: cause("arenas"), not: "trim"}, "9 MiB are free in arenas. To do: call Trim", false},
		{planted{want: healthy}, "Nothing stands out; of 9 MiB the most is C; whether it grows can be told after some more looks", true},
		{planted{want: cause(`main\.rows\b`), may: "rows"}, "C memory grew until the end at main.rows main.go:9", true},
	} {
		if wrong := c.p.judge(c.sentence); (wrong == "") != c.right {
			t.Errorf("%q is judged %q", c.sentence, wrong)
		}
	}
}

func TestSentence(t *testing.T) {
	if got := verdict("cheap record: the C heap of x\n  verdict     C grew\n  to do       see it\n  calls       5\n"); got != "C grew. To do: see it" {
		t.Errorf("of a report %q", got)
	}
	if got := onPage("<p class=\"answer\">C &lt;grew.</p>\n<p class=\"lead\">See it.</p>"); got != "C <grew. To do: See it" {
		t.Errorf("of a page %q", got)
	}
}
