//go:build cgo && linux && amd64

package attach

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// filterOf returns a filter that does something with a call, allows others, and has an argument of clone in it, as Docker has.
func filterOf(nr, action uint32) []unix.SockFilter {
	const equal, load = unix.BPF_JMP | unix.BPF_JEQ, unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	return []unix.SockFilter{
		{Code: load, K: 4},
		{Code: equal, Jt: 1, K: 0xc000003e}, // AMD64
		{Code: unix.BPF_RET, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: load, K: 0},
		{Code: equal, Jf: 1, K: nr},
		{Code: unix.BPF_RET, K: action},
		{Code: equal, Jf: 4, K: unix.SYS_CLONE},
		{Code: load, K: 16},
		{Code: unix.BPF_ALU | unix.BPF_AND, K: unix.CLONE_NEWUSER},
		{Code: equal, Jt: 1},
		{Code: unix.BPF_RET, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: unix.BPF_RET, K: unix.SECCOMP_RET_ALLOW},
	}
}

func TestMayEnd(t *testing.T) {
	onArgument := filterOf(unix.SYS_REBOOT, unix.SECCOMP_RET_ALLOW)
	onArgument[10].K = unix.SECCOMP_RET_TRAP
	for i, c := range []struct {
		filter []unix.SockFilter
		nr     uint32
		want   bool
	}{
		{filterOf(unix.SYS_REBOOT, unix.SECCOMP_RET_KILL_PROCESS), unix.SYS_MMAP, false},
		{filterOf(unix.SYS_REBOOT, unix.SECCOMP_RET_KILL_PROCESS), unix.SYS_REBOOT, true},
		{filterOf(unix.SYS_REBOOT, unix.SECCOMP_RET_ERRNO|5), unix.SYS_REBOOT, false},
		{filterOf(unix.SYS_REBOOT, unix.SECCOMP_RET_USER_NOTIF), unix.SYS_REBOOT, true},
		{filterOf(unix.SYS_REBOOT, unix.SECCOMP_RET_ALLOW), unix.SYS_CLONE, false},
		{onArgument, unix.SYS_CLONE, true},
		{onArgument, unix.SYS_MMAP, false},
		{nil, unix.SYS_MMAP, true},
		{[]unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_A}}, unix.SYS_MMAP, true},
	} {
		if got := mayEnd(c.filter, c.nr); got != c.want {
			t.Errorf("filter %d: %v for the call %d", i, got, c.nr)
		}
	}
}

// TestFiltered has processes with a filter of system calls, which ends one of them for a call that is needed, and one for another.
func TestFiltered(t *testing.T) {
	t.Parallel()
	for _, nr := range []int{unix.SYS_REBOOT, unix.SYS_MEMFD_CREATE} {
		p := kits[0].start(t, "/proc/self/exe", "filter", fmt.Sprint(nr), kits[0].program, "calls")
		if nr == unix.SYS_REBOOT && os.Getuid() == 0 {
			end(t, p.attach(t))
		} else if target, err := Open(p.Process.Pid); err != nil {
			t.Fatal(err)
		} else if _, err := target.Load(p.kit.library, 1<<10); err == nil || !strings.Contains(err.Error(), "goes on as before: it has a filter of system calls (seccomp), which ") {
			t.Error(err)
		}
		p.end(t)
	}
}
