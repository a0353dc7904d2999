package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
)

// An origin says which source this program was built from, as far as that is known.
type origin struct {
	version string // of the module, as the go command names it; a commit without a tag has one, too
	commit  string // 12 digits; "+dirty" follows if files differed from it
}

// programOrigin returns the source of this program. go run stamps nothing.
func programOrigin() (s origin) {
	if info, ok := debug.ReadBuildInfo(); ok {
		s = infoOrigin(info, commit)
	}
	return s
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
