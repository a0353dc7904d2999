package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"testing"
)

func TestStamped(t *testing.T) {
	setting := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	for _, tt := range []struct {
		settings []debug.BuildSetting
		want     string
	}{
		{nil, ""},
		{[]debug.BuildSetting{setting("vcs.modified", "true")}, ""},
		{[]debug.BuildSetting{setting("vcs.revision", "0123456789abcdef"), setting("vcs.modified", "false")}, "0123456789ab"},
		{[]debug.BuildSetting{setting("vcs.modified", "true"), setting("vcs.revision", "0123456789abcdef")}, "0123456789ab+dirty"},
	} {
		if got := stamped(tt.settings); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.settings, got, tt.want)
		}
	}
}

func TestInfoOrigin(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	for _, tt := range []struct {
		version, stamp, released string
		want                     origin
	}{
		{"(devel)", "", "", origin{}},
		{"", "", "", origin{}},
		{"v0.1.0", "", "", origin{"v0.1.0", ""}},
		{"v0.1.0", "", commit, origin{"v0.1.0", "0123456789ab"}},
		{"v0.0.0-20261126012755-5fb0ec1493e4", "", "", origin{"v0.0.0-20261126012755-5fb0ec1493e4", "5fb0ec1493e4"}},
		{"v0.1.1-0.20261126012755-5fb0ec1493e4", commit, "", origin{"v0.1.1-0.20261126012755-5fb0ec1493e4", "0123456789ab"}},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: tt.version}}
		if tt.stamp != "" {
			info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: tt.stamp}}
		}
		if got := infoOrigin(info, tt.released); got != tt.want {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
}

func TestPseudoVersion(t *testing.T) {
	for base, want := range map[string]string{
		"":            "v0.0.0-20261126012755-5fb0ec1493e4",
		"v0.1.0":      "v0.1.1-0.20261126012755-5fb0ec1493e4",
		"v1.2.9":      "v1.2.10-0.20261126012755-5fb0ec1493e4",
		"v1.2.0-rc.1": "v1.2.0-rc.1.0.20261126012755-5fb0ec1493e4",
		"v1.x":        "v0.0.0-20261126012755-5fb0ec1493e4",
	} {
		if got := pseudoVersion(base, "20261126012755", "5fb0ec1493e4"); got != want {
			t.Errorf("%q: %s, want %s", base, got, want)
		}
	}
}

// TestCheckedOut makes a checkout, tags it, and changes a file.
func TestCheckedOut(t *testing.T) {
	dir := t.TempDir()
	if got := checkedOut(dir); got != (origin{}) {
		t.Errorf("a folder without a checkout is of %+v", got)
	}
	if _, err := exec.LookPath("git"); err != nil {
		return // nothing else to see
	}
	git := func(args ...string) {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=test", "-c", "user.email=test@localhost"}, args...)...)
		c.Env = append(c.Environ(), "GIT_COMMITTER_DATE=2026-11-26T03:27:55+0200")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v: %s", args[0], err, out)
		}
	}
	file := filepath.Join(dir, "file")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	check := func(version string) {
		t.Helper()
		got := checkedOut(dir)
		if !regexp.MustCompile("^" + version + "$").MatchString(got.version + " " + got.commit) {
			t.Errorf("%+v, want %s", got, version)
		}
	}
	git("init", "-q")
	write("1")
	git("add", "file")
	git("commit", "-q", "-m", "one")
	check(`v0\.0\.0-20261126012755-([0-9a-f]{12}) [0-9a-f]{12}`)
	git("tag", "v0.9.0") // of another module
	git("tag", "cmd/cheap/v0.1.0")
	check(`v0\.1\.0 [0-9a-f]{12}`)
	write("2")
	check(`v0\.1\.0\+dirty [0-9a-f]{12}\+dirty`)
	git("commit", "-q", "-a", "-m", "two")
	check(`v0\.1\.1-0\.20261126012755-[0-9a-f]{12} [0-9a-f]{12}`)
}
