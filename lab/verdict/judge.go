//go:build linux && cgo

package main

import (
	"html"
	"regexp"
	"strings"
)

// planted is a program, and what is true of it. All patterns are for the sentence: the verdict, and what
// there is to do.
type planted struct {
	name, truth string
	run         func()
	real        string   // else the folder of a program of lab/followed/testdata
	args        []string // in place of the name
	preload     string   // the allocator
	want        want
	must        string // in place of that of want
	not         string // in addition to that of want
	may         string // functions of the program that may be named, else those of want; no other may
}

// want is what a kind of program has in common.
type want struct{ must, not, may string }

// line is wanted where a function allocates what is never freed, and it is one of those of a pattern.
func line(functions string) want {
	return want{`main\.(` + functions + `)\b`, `nothing stands out|arenas|trim|no leak|cannot be told|too small`, functions}
}

// cause is wanted where no line is at fault, or what says so is not a line.
func cause(pattern string) want {
	return want{pattern, `nothing stands out|too small`, ""}
}

// healthy is wanted where nothing is at fault. What holds the most may be named, as that.
var healthy = want{``, `grew|growing|has grown|it is a leak|frees nothing|arenas|trim|too small|GOGC|GOMEMLIMIT|cannot be told`, `\w+`}

var named = regexp.MustCompile(`\bmain\.[(*]*(\w+)`)

// judge says what is wrong with a sentence, or nothing.
func (p planted) judge(sentence string) string {
	must, not, may := p.want.must, p.want.not, p.want.may
	if p.must != "" {
		must = p.must
	}
	if p.may != "" {
		may = p.may
	}
	if sentence == "" {
		return "there is no verdict"
	}
	if !matches(must, sentence) {
		return "it has not " + must
	}
	for _, pattern := range []string{not, p.not} {
		if pattern != "" && matches(pattern, named.ReplaceAllString(sentence, "")) { // a function may be called besideArenas
			return "it has " + regexp.MustCompile("(?i)"+pattern).FindString(sentence)
		}
	}
	for _, n := range named.FindAllStringSubmatch(sentence, -1) {
		if n[1] != "go" && !regexp.MustCompile(`^(`+may+`)$`).MatchString(n[1]) {
			return "it accuses main." + n[1]
		}
	}
	return ""
}

func matches(pattern, text string) bool {
	return regexp.MustCompile("(?i)" + pattern).MatchString(text)
}

var (
	reported = regexp.MustCompile(`(?m)^  verdict +(.*)\n(?:  to do +(.*)\n)?`)
	answered = regexp.MustCompile(`<p class="answer">(.*?)</p>(?:\s*<p class="lead">(.*?)</p>)?`)
)

// verdict returns the sentence of a report with what is to do, and onPage that of a page.
func verdict(report string) string { return sentence(reported.FindStringSubmatch(report)) }

func onPage(page string) string { return sentence(answered.FindStringSubmatch(page)) }

func sentence(found []string) string {
	if found == nil {
		return ""
	}
	text := strings.TrimRight(html.UnescapeString(found[1]), ".")
	if found[2] != "" {
		text += ". To do: " + strings.TrimRight(html.UnescapeString(found[2]), ".")
	}
	return text
}
