// Release makes a version of all modules of this repository that programs may require, from one
// commit:
//
//	cd tools && GOWORK=off go run ./release v0.1.0
//
// It makes two commits behind that commit, and tags. In the first, which the tags name, no go.mod of
// a published module has a replace line for another module of the repository: each requires the
// others at the version, and its go.sum has their sums. The second has the replace lines again, on
// which development goes on. The branch release-VERSION is at the second one. Both lack what documents
// say between "<!-- until a version -->" and "<!-- end -->".
//
// It writes objects and refs of the repository, all refs or none. It changes no file of the
// checkout, no branch that exists and no remote. It prints the command that publishes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	repo := flags.String("C", ".", "the `repository`, which may be bare")
	from := flags.String("from", "HEAD", "the `commit` to release")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New("which version? for example: release v0.1.0")
	}
	r, err := makeRelease(*repo, *from, flags.Arg(0))
	if err != nil {
		return err
	}
	r.print(stdout)
	return nil
}

// A release is what this command has made.
type release struct {
	version string
	from    string // the commit that was asked for
	at      string // the commit of the tags
	next    string // the commit after it, where development goes on
	modules []*mod // in the order of their needs
}

// branch is the name of the branch that ends at next.
func (r *release) branch() string { return "release-" + r.version }

// makeRelease makes a version of a commit in a repository. The refs come last, and all together.
func makeRelease(repo, from, version string) (*release, error) {
	if module.CanonicalVersion(version) != version || version == "" {
		return nil, fmt.Errorf("%q is no version such as v0.1.0", version)
	}
	if major := semver.Major(version); major != "v0" && major != "v1" {
		return nil, fmt.Errorf("%s needs module paths that end with /%s", version, major)
	}
	g := git(repo)
	t, err := g.tree(from)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(string(t.text("CHANGELOG.md")), "\n## "+version+"\n") {
		return nil, fmt.Errorf("CHANGELOG.md has no section %s", version)
	}
	modules, err := t.modules()
	if err != nil {
		return nil, err
	}
	r := &release{version: version, from: t.commit}
	if r.modules, err = ordered(modules); err != nil {
		return nil, err
	}
	at, next, err := edited(t, modules, r.modules, version)
	if err != nil {
		return nil, err
	}
	if r.at, err = g.commit(t.commit, at, "release: "+version); err != nil {
		return nil, err
	}
	if r.next, err = g.commit(r.at, next, "release: development goes on after "+version); err != nil {
		return nil, err
	}
	var refs strings.Builder
	for _, m := range r.modules {
		fmt.Fprintf(&refs, "create refs/tags/%s %s\n", m.tag(version), r.at)
	}
	fmt.Fprintf(&refs, "create refs/heads/%s %s\n", r.branch(), r.next)
	_, err = g.run(refs.String(), nil, "update-ref", "--stdin")
	return r, err
}

// print says what was made, and how it is published.
func (r *release) print(w io.Writer) {
	fmt.Fprintf(w, "%s of commit %s: %d modules, in the order of their needs\n\n", r.version, r.from, len(r.modules))
	refs := []string{r.branch() + ":main"}
	for _, m := range r.modules {
		fmt.Fprintf(w, "%-22s %s\n", m.tag(r.version), m.sum)
		refs = append(refs, m.tag(r.version))
	}
	fmt.Fprintf(w, "\nTo publish it:\n\n\tgit push --atomic origin %s\n", strings.Join(refs, " "))
}
