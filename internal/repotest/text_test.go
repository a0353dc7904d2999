package repotest

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// textFiles calls f for each file of the checkout that is text.
func textFiles(t *testing.T, f func(name, text string)) {
	t.Helper()
	for _, name := range files(t) {
		if text := read(t, name); strings.IndexByte(text, 0) < 0 && utf8.ValidString(text) {
			f(name, text)
		}
	}
}

// eachMatch reports every line of the checkout that re matches.
func eachMatch(t *testing.T, re *regexp.Regexp, complaint string) {
	t.Helper()
	textFiles(t, func(name, text string) {
		for i, line := range strings.Split(text, "\n") {
			if m := re.FindString(line); m != "" {
				t.Errorf("%s:%d: %s: %q", name, i+1, complaint, m)
			}
		}
	})
}

// TestNoPrograms finds what go build has left in the checkout.
func TestNoPrograms(t *testing.T) {
	t.Parallel()
	for _, name := range files(t) {
		for _, magic := range []string{"\x7fELF", "\xcf\xfa\xed\xfe", "MZ", "!<arch>\n"} {
			if strings.HasPrefix(read(t, name), magic) {
				t.Errorf("%s is a program or a library", name)
			}
		}
	}
}

func TestNoPathsOfAMachine(t *testing.T) {
	t.Parallel()
	// Written so that it does not match itself.
	re := regexp.MustCompile(`(?:^|[^\w.*)}\-])/(?:home|root|Users|work|farm|var/tmp|tmp)/\w`)
	eachMatch(t, re, "a path of one machine")
}

// Files are indented, end and break lines in one way, so that tools that work
// on lines need not care.
func TestLines(t *testing.T) {
	t.Parallel()
	textFiles(t, func(name, text string) {
		if strings.Contains(text, "\r") {
			t.Errorf("%s has carriage returns", name)
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			t.Errorf("%s does not end with a line break", name)
		}
	})
}
