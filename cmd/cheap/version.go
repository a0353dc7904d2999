package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

// version describes the source that this program was built from: the version of the
// module, or the revision of the checkout, as far as it is known.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	if ok {
		if v := stamped(info.Settings); v != "" {
			return v
		}
	}
	// go run stamps nothing, but what it runs was built a moment ago from the source.
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) && isGoRun() {
		if v := checkedOut(filepath.Dir(file)); v != "" {
			return v
		}
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
	return revision[:min(len(revision), 12)] + modified
}

// checkedOut returns the revision of the checkout that a folder is in, "" if it is in
// none, or if there is no git command.
func checkedOut(dir string) string {
	revision, err := exec.Command("git", "-C", dir, "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return ""
	}
	v := strings.TrimSpace(string(revision))
	changes, err := exec.Command("git", "-C", dir, "status", "--porcelain", "--untracked-files=no").Output()
	if err == nil && len(changes) > 0 {
		v += "+dirty"
	}
	return v
}

// versionCommand is `cheap version`.
func versionCommand(stdout io.Writer) error {
	_, err := fmt.Fprintf(stdout, "cheap %s, built with %s for %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
