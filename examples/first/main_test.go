package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/own"
)

func TestMain(m *testing.M) {
	if os.Getenv("FIRST_MAIN") == "1" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program runs main in a process of its own.
func program(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(cmd.Environ(), "FIRST_MAIN=1")
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestProgram(t *testing.T) {
	var numbers strings.Builder
	for i := range 20_000 {
		fmt.Fprintln(&numbers, i)
	}
	if out, err := program(t, numbers.String(), "12345"); err != nil || out != "1\n2\n3\n4\n5\n12\n23\n34\n45\n123\n234\n345\n1234\n2345\n12345\n" {
		t.Errorf("%v, %q", err, out)
	}
	if out, err := program(t, "a\n(\nb\n", "ab"); err == nil || !strings.Contains(out, `no regular expression: "("`) || strings.Contains(out, "b\n") {
		t.Errorf("%v, %q", err, out)
	}
}

// TestMatch compares with package regexp.
func TestMatch(t *testing.T) {
	texts := []string{"", "a", "ab", "aab", "xyz", "x\ny", "b a"}
	for _, expr := range []string{"a", "^a", "b$", "^a*b$", "(ab|x.*z)", "[^a]", "^$", "a{2}"} {
		re, err := Compile(expr)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			if got, err := re.Match(text); err != nil || got != regexp.MustCompile(expr).MatchString(text) {
				t.Errorf("%s in %q: %t, %v", expr, text, got, err)
			}
		}
		if err := re.Close(); err != nil {
			t.Error(err)
		}
		if _, err := re.Match("a"); !errors.Is(err, own.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
	for _, expr := range []string{"(", "[", "*a{"} {
		if re, err := Compile(expr); err == nil {
			t.Errorf("%s compiles: %v", expr, re)
		}
	}
}

// TestForgotten waits until C has freed what the test has made and forgotten.
func TestForgotten(t *testing.T) {
	for i := range 1000 {
		if _, err := Compile(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	for regexps.Stats().Live > 0 {
		runtime.GC()
		if err := own.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if s := regexps.Stats(); s.Collected < 1000 {
		t.Errorf("the collector released %d", s.Collected)
	}
	kept, err := Compile("kept")
	if err != nil {
		t.Fatal(err)
	}
	if matches, err := kept.Match("it is kept"); !matches || err != nil {
		t.Errorf("%t, %v", matches, err)
	}
	if open := slices.Collect(regexps.Live()); len(open) != 1 {
		t.Errorf("%d are open", len(open))
	}
	runtime.KeepAlive(kept)
}
