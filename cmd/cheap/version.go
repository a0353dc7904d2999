package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// An origin says which source this program was built from, as far as that is known.
type origin struct {
	version string // of the module, as the go command names it; a commit without a tag has one, too
	commit  string // 12 digits; "+dirty" follows if files differed from it
}

// programOrigin returns the source of this program.
func programOrigin() origin {
	if info, ok := debug.ReadBuildInfo(); ok {
		if s := infoOrigin(info, commit); s != (origin{}) {
			return s
		}
	}
	// go run stamps nothing, but what it runs was built a moment ago from the source.
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) && isGoRun() {
		return checkedOut(filepath.Dir(file))
	}
	return origin{}
}

// infoOrigin returns the source that the go command has written into a program. The release command has
// written the commit released, which is "" in a checkout.
func infoOrigin(info *debug.BuildInfo, released string) origin {
	var s origin
	if v := info.Main.Version; v != "(devel)" {
		s.version = v
	}
	switch stamp := stamped(info.Settings); {
	case stamp != "":
		s.commit = stamp
	case released != "":
		s.commit = short(released)
	case strings.Count(s.version, "-") >= 2: // go install of a commit: v0.0.0-20261126012755-5fb0ec1493e4
		s.commit = s.version[strings.LastIndexByte(s.version, '-')+1:]
	}
	return s
}

// version is what reports say: the version of the module, or else the commit.
func version() string {
	s := programOrigin()
	switch {
	case s.version != "":
		return s.version
	case s.commit != "":
		return s.commit
	}
	return "unknown"
}

// isGoRun reports whether go run has started this program.
func isGoRun() bool {
	self, err := os.Executable()
	return err == nil && strings.Contains(filepath.ToSlash(self), "/go-build")
}

// stamped returns the revision that the go command has stamped, "" if there is none.
func stamped(settings []debug.BuildSetting) string {
	revision, modified := "", ""
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = "+dirty"
		}
	}
	if revision == "" {
		return ""
	}
	return short(revision) + modified
}

// short shortens a revision as the go command does.
func short(revision string) string { return revision[:min(len(revision), 12)] }

// checkedOut returns the source in the checkout that a folder is in, the zero value if it is in none,
// or if there is no git command. The version is what the go command would name it.
func checkedOut(dir string) origin {
	git := func(args ...string) (string, bool) {
		c := exec.Command("git", append([]string{"-C", dir}, args...)...)
		c.Env = append(c.Environ(), "TZ=UTC")
		out, err := c.Output()
		return strings.TrimSpace(string(out)), err == nil
	}
	head, ok := git("log", "-1", "--format=%H %cd", "--date=format-local:%Y%m%d%H%M%S")
	revision, date, two := strings.Cut(head, " ")
	if !ok || !two {
		return origin{}
	}
	const tags = "cmd/cheap/"
	tagged, _ := git("describe", "--tags", "--exact-match", "--match="+tags+"v*")
	base, _ := git("describe", "--tags", "--abbrev=0", "--match="+tags+"v*")
	s := origin{version: strings.TrimPrefix(tagged, tags), commit: short(revision)}
	if tagged == "" {
		s.version = pseudoVersion(strings.TrimPrefix(base, tags), date, s.commit)
	}
	if changes, ok := git("status", "--porcelain", "--untracked-files=no"); ok && changes != "" {
		s.version += "+dirty"
		s.commit += "+dirty"
	}
	return s
}

// pseudoVersion returns the version of a commit that has no tag, as the Go modules reference defines
// it. The tag of the newest version before it is base, "" for none.
func pseudoVersion(base, date, commit string) string {
	behind := date + "-" + commit
	if base == "" {
		return "v0.0.0-" + behind
	}
	if strings.Contains(base, "-") {
		return base + ".0." + behind
	}
	dot := strings.LastIndexByte(base, '.')
	patch, err := strconv.Atoi(base[dot+1:])
	if err != nil {
		return "v0.0.0-" + behind
	}
	return base[:dot+1] + strconv.Itoa(patch+1) + "-0." + behind
}

// versionCommand is `cheap version`.
func versionCommand(stdout io.Writer) error {
	s := programOrigin()
	if s.version == "" {
		s.version = "unknown"
	}
	if s.commit == "" {
		s.commit = "unknown"
	}
	_, err := fmt.Fprintf(stdout, "cheap %s, commit %s, built with %s for %s/%s\n", s.version, s.commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
