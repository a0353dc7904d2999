package main

import (
	"fmt"
	"go/build"
	"go/build/constraint"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A system is what build tags are compared with.
type system struct{ build.Context }

// newSystem returns the system of the go command, with the tags of GOFLAGS.
func newSystem() system {
	s := system{build.Default}
	s.CgoEnabled = true
	if out, err := exec.Command("go", "env", "GOOS", "GOARCH", "GOFLAGS").Output(); err == nil {
		lines := strings.Split(string(out), "\n")
		s.GOOS, s.GOARCH = lines[0], lines[1]
		for _, flag := range strings.Fields(lines[2]) {
			if tags, ok := strings.CutPrefix(strings.TrimLeft(flag, "-"), "tags="); ok {
				s.BuildTags = append(s.BuildTags, strings.Split(tags, ",")...)
			}
		}
	}
	return s
}

// assume adds the tags that a file needs, which is known to be compiled.
func (s *system) assume(expr constraint.Expr) {
	switch x := expr.(type) {
	case *constraint.TagExpr:
		s.BuildTags = append(s.BuildTags, x.Tag)
	case *constraint.AndExpr:
		s.assume(x.X)
		s.assume(x.Y)
	}
}

// builds reports whether a Go file is compiled, by its name and its build tags.
func (s *system) builds(file string) bool {
	ok, err := s.MatchFile(filepath.Split(file))
	return ok && err == nil
}

// holds reports whether one of the conditions of a #cgo line holds.
func (s *system) holds(conditions []string) bool {
	expr, err := constraint.Parse("// +build " + strings.Join(conditions, " "))
	return err == nil && expr.Eval(func(tag string) bool {
		return tag == s.GOOS || tag == s.GOARCH || tag == s.Compiler || tag == "cgo" || tag == "unix" && s.GOOS != "windows" ||
			slices.Contains(s.BuildTags, tag) || slices.Contains(s.ReleaseTags, tag)
	})
}

// directive adds the flags for the compiler of a line behind #cgo.
func (s *source) directive(line string) error {
	key, value, ok := strings.Cut(line, ":")
	if !ok {
		return nil // noescape, nocallback
	}
	words := strings.Fields(key)
	if len(words) == 0 || len(words) > 1 && !s.system.holds(words[:len(words)-1]) {
		return nil
	}
	flags, err := splitQuoted(value)
	if err != nil {
		return fmt.Errorf("#cgo %s: %w", line, err)
	}
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		return err
	}
	for i := range flags {
		flags[i] = strings.ReplaceAll(flags[i], "${SRCDIR}", dir)
	}
	switch words[len(words)-1] {
	case "CFLAGS", "CPPFLAGS":
		s.flags = append(s.flags, flags...)
	case "pkg-config":
		out, err := exec.Command("pkg-config", append([]string{"--cflags", "--"}, flags...)...).Output()
		if err != nil {
			return fmt.Errorf("pkg-config%s: %s", value, reason(err))
		}
		flags, err := splitQuoted(string(out))
		if err != nil {
			return fmt.Errorf("pkg-config%s: %w", value, err)
		}
		s.flags = append(s.flags, flags...)
	}
	return nil
}

// splitQuoted splits at spaces that are not quoted by ', " or a backslash, as cgo does.
func splitQuoted(text string) (words []string, err error) {
	var word []rune
	var quote rune
	escaped, inWord := false, false
	for _, r := range text {
		switch {
		case escaped:
			escaped = false
		case r == '\\':
			escaped, inWord = true, true
			continue
		case quote != 0 && r == quote:
			quote = 0
			continue
		case quote != 0:
		case r == '\'' || r == '"':
			quote, inWord = r, true
			continue
		case strings.ContainsRune(" \t\r\n", r):
			if inWord {
				words = append(words, string(word))
			}
			word, inWord = nil, false
			continue
		}
		word, inWord = append(word, r), true
	}
	if inWord {
		words = append(words, string(word))
	}
	if quote != 0 || escaped {
		return nil, fmt.Errorf("a quote has no end")
	}
	return words, nil
}
