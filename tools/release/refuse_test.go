package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// A repository of two modules that are published, and one that is not.
var small = map[string]string{
	"CHANGELOG.md": "# Changelog\n\n## v0.1.0\n\nNew.\n\n## v0.2.0\n\nNewer.\n",
	"LICENSE":      "None.\n",
	"README.md":    "Get it.<!-- until a version --> There is\nnone.<!-- end --> Use it.<!-- until a version -->\n\nWait.<!-- end -->\n",
	"go.mod":       "module example.com/m\n\ngo 1.26.0\n",
	"m.go":         "package m\n",

	"a/go.mod": "module example.com/m/a\n\ngo 1.26.0\n\nrequire example.com/m v0.0.0\n\nreplace example.com/m => ..\n",
	"a/go.sum": "example.com/l v1.0.0 h1:x=\nexample.com/n v1.0.0 h1:x=\n",
	"a/a.go":   "package a\n\nimport _ \"example.com/m\"\n",

	"examples/e/go.mod": "module example.com/m/examples/e\n\ngo 1.26.0\n\nrequire example.com/m/a v0.0.0\n\nreplace example.com/m/a => ../../a\n",

	commitFile: "package main\n\nconst commit = \"\"\n",
}

// smallRepository makes the repository, with other texts for some files.
func smallRepository(t *testing.T, other map[string]string) string {
	t.Helper()
	someone(t)
	dir := t.TempDir()
	files := maps.Clone(small)
	maps.Copy(files, other)
	for name, text := range files {
		writeFile(t, text, dir, name)
	}
	command(t, dir, nil, "git", "init", "-q")
	command(t, dir, nil, "git", "add", "-A")
	command(t, dir, nil, "git", "commit", "-q", "-m", "one")
	return dir
}

// TestRefused asks for versions that cannot be made: nothing is left of them.
func TestRefused(t *testing.T) {
	needs := func(what string) map[string]string {
		return map[string]string{"a/go.mod": "module example.com/m/a\n\ngo 1.26.0\n\nrequire " + what + "\n"}
	}
	for _, tt := range []struct {
		name, version string
		other         map[string]string
		want          string
	}{
		{"no version", "0.1.0", nil, `"0.1.0" is no version such as v0.1.0`},
		{"short", "v0.1", nil, `"v0.1" is no version such as v0.1.0`},
		{"major", "v2.0.0", nil, "v2.0.0 needs module paths that end with /v2"},
		{"changelog", "v0.3.0", nil, "CHANGELOG.md has no section v0.3.0"},
		{"private", "v0.1.0", needs("example.com/m/examples/e v0.0.0"), "example.com/m/a requires example.com/m/examples/e, which gets no version"},
		{"cycle", "v0.1.0", needs("example.com/m/a v0.0.0"), "example.com/m/a needs itself"},
		{"foreign", "v0.1.0", map[string]string{"go.mod": small["go.mod"] + "\nreplace example.com/l => ../l\n"}, "go.mod replaces example.com/l: go install would refuse the module"},
		{"commit", "v0.1.0", map[string]string{commitFile: "package main\n"}, commitFile + " has no line"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := smallRepository(t, tt.other)
			_, err := makeRelease(dir, "HEAD", tt.version)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %s", err, tt.want)
			}
			if refs := command(t, dir, nil, "git", "for-each-ref"); strings.Count(refs, "\n") != 1 {
				t.Errorf("the refs are\n%s", refs)
			}
		})
	}
}

// TestTwoVersions makes a version, the same one again, and another one of the commit after it. The
// checkout stays as it is.
func TestTwoVersions(t *testing.T) {
	dir := smallRepository(t, nil)
	writeFile(t, "package m // changed\n", dir, "m.go")
	before := command(t, dir, nil, "git", "status", "--porcelain", "--branch")
	first, err := makeRelease(dir, "HEAD", "v0.1.0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := makeRelease(dir, "HEAD", "v0.1.0"); err == nil || !strings.Contains(err.Error(), "v0.1.0") {
		t.Errorf("a second v0.1.0: %v", err)
	}
	second, err := makeRelease(dir, first.next, "v0.2.0")
	if err != nil {
		t.Fatal(err)
	}
	if after := command(t, dir, nil, "git", "status", "--porcelain", "--branch"); after != before {
		t.Errorf("the checkout is %q after the command, was %q", after, before)
	}
	if got, want := strings.Fields(command(t, dir, nil, "git", "tag")), []string{"a/v0.1.0", "a/v0.2.0", "v0.1.0", "v0.2.0"}; !slices.Equal(got, want) {
		t.Errorf("the tags are %q, want %q", got, want)
	}
	show := func(commit, name string) string { return command(t, dir, nil, "git", "show", commit+":"+name) }
	for _, r := range []*release{first, second} {
		root := r.modules[0]
		for _, commit := range []string{r.at, r.next} {
			if got := show(commit, "README.md"); got != "Get it. Use it.\n" {
				t.Errorf("%s: README.md is %q in %s", r.version, got, commit)
			}
		}
		if want := "module example.com/m/a\n\ngo 1.26.0\n\nrequire example.com/m " + r.version + "\n"; show(r.at, "a/go.mod") != want {
			t.Errorf("%s: a/go.mod is\n%s", r.version, show(r.at, "a/go.mod"))
		}
		want := fmt.Sprintf("example.com/l v1.0.0 h1:x=\nexample.com/m %[1]s %[2]s\nexample.com/m %[1]s/go.mod %[3]s\nexample.com/n v1.0.0 h1:x=\n", r.version, root.sum, root.modSum)
		if got := show(r.at, "a/go.sum"); got != want {
			t.Errorf("%s: a/go.sum is\n%s\nwant\n%s", r.version, got, want)
		}
		if got := show(r.next, "a/go.sum"); got != small["a/go.sum"] {
			t.Errorf("%s: a/go.sum is after it\n%s", r.version, got)
		}
		if got := show(r.next, "a/go.mod"); got != strings.Replace(small["a/go.mod"], "v0.0.0", r.version, 1) {
			t.Errorf("%s: a/go.mod is after it\n%s", r.version, got)
		}
		if got := show(r.at, "examples/e/go.mod"); got != strings.Replace(small["examples/e/go.mod"], "v0.0.0", r.version, 1) {
			t.Errorf("%s: the go.mod of an example is\n%s", r.version, got)
		}
		if got := show(r.at, commitFile); !strings.Contains(got, r.from) {
			t.Errorf("%s: %s is\n%s", r.version, commitFile, got)
		}
	}
}
