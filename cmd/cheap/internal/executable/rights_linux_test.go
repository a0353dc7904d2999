package executable

import "testing"

func TestRights(t *testing.T) {
	t.Parallel()
	const setuid, setgid, program = 0o4000, 0o2000, 0o100755
	for _, c := range []struct {
		mode, owner, group uint32
		capabilities       bool
		uid                uint32
		noNew              bool
		want               string
	}{
		{mode: program},
		{mode: program, owner: 5, group: 5, uid: 1000},
		{mode: program | setuid, uid: 1000, want: "is setuid, of the user 0"},
		{mode: program | setuid, uid: 1000, noNew: true},
		{mode: program | setuid, owner: 5, want: "is setuid, of the user 5"},
		{mode: program | setuid}, // of root, started by root
		{mode: program | setgid, group: 42, want: "is setgid, of the group 42"},
		{mode: program | setgid, group: 42, noNew: true},
		{mode: program | setgid},
		{mode: 0o100644 | setgid, group: 42},
		{mode: program, capabilities: true, uid: 1000, want: "has file capabilities"},
		{mode: program, capabilities: true, uid: 1000, noNew: true, want: "has file capabilities"},
		{mode: program, capabilities: true}, // root has all
	} {
		if got := rights(c.mode, c.owner, c.group, c.capabilities, c.uid, 0, c.noNew); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
