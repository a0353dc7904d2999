package main

import (
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
