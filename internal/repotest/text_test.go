package repotest

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// textFiles calls f for each file of the checkout that is text.
func textFiles(t *testing.T, f func(name, text string)) {
	t.Helper()
	for _, name := range files(t) {
		b, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(b, 0) < 0 && utf8.Valid(b) {
			f(name, string(b))
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
	for _, name := range files(t) {
		b, err := os.ReadFile(filepath.Join(root(t), filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		for _, magic := range []string{"\x7fELF", "\xcf\xfa\xed\xfe", "MZ", "!<arch>\n"} {
			if bytes.HasPrefix(b, []byte(magic)) {
				t.Errorf("%s is a program or a library", name)
			}
		}
	}
}

func TestNoPathsOfAMachine(t *testing.T) {
	// Written so that it does not match itself.
	re := regexp.MustCompile(`(?:^|[^\w.*)}\-])/(?:home|root|Users|work|farm|var/tmp|tmp)/\w`)
	eachMatch(t, re, "a path of one machine")
}

func TestNothingIsLeftForLater(t *testing.T) {
	re := regexp.MustCompile(`\b(?:TO` + `DO|FIX` + `ME|XX` + `X)\b`)
	eachMatch(t, re, "unfinished by its own words")
}

// Files are indented, end and break lines in one way, so that tools that work
// on lines need not care.
func TestLines(t *testing.T) {
	textFiles(t, func(name, text string) {
		if strings.Contains(text, "\r") {
			t.Errorf("%s has carriage returns", name)
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			t.Errorf("%s does not end with a line break", name)
		}
	})
}

// TestPlainWords looks for words that leave open who or what is meant.
func TestPlainWords(t *testing.T) {
	// Written so that it does not match itself.
	re := regexp.MustCompile(`(?i)\b(?:who` + `ever|no` + `body's|some` + `body|him` + `self|what li` + `es)\b`)
	eachMatch(t, re, "write who or what it is: the caller, the goroutine, the heap")
}

// TestOwnersAreFields looks for types that embed an Owner, a Handle or a Number, in
// code that a reader may take as a model. Such a type has all their methods, Disown
// among them.
func TestOwnersAreFields(t *testing.T) {
	re := regexp.MustCompile(`(?m)(?:^|[{;])[ \t]*\*?own\.(?:Owner|(?:Handle|Number)\[.*\])[ \t]*(?://.*)?(?:$|[};])`)
	textFiles(t, func(name, text string) {
		// The tests of own call all methods of an Owner.
		if strings.HasPrefix(name, "own/") || strings.HasPrefix(name, "cmd/cheap/internal/owntest/") {
			return
		}
		if m := re.FindString(text); m != "" {
			t.Errorf("%s: %q: embedded; write a field that is not exported", name, m)
		}
	})
}
