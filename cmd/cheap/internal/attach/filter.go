//go:build linux && amd64

package attach

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// needed are the system calls that are made in the process: by it as this package wants it, by dlopen, and by the library.
var needed = []uint32{
	unix.SYS_MEMFD_CREATE, unix.SYS_CLOSE, unix.SYS_RT_SIGRETURN,
	unix.SYS_OPENAT, unix.SYS_OPEN, unix.SYS_READ, unix.SYS_FSTAT, unix.SYS_NEWFSTATAT, unix.SYS_MMAP, unix.SYS_MPROTECT, unix.SYS_MUNMAP, unix.SYS_BRK,
	unix.SYS_CLONE, unix.SYS_CLONE3, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGACTION, unix.SYS_PRCTL,
	unix.SYS_FUTEX, unix.SYS_PREAD64, unix.SYS_PROCESS_VM_READV, unix.SYS_FALLOCATE, unix.SYS_MADVISE, unix.SYS_GETRANDOM,
	unix.SYS_CLOCK_NANOSLEEP, unix.SYS_NANOSLEEP, unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_EXIT, unix.SYS_RESTART_SYSCALL,
	unix.SYS_FCNTL, unix.SYS_MEMBARRIER, unix.SYS_TKILL, // musl
}

// checkFilters returns an error if a filter of system calls of the thread might end the process. A call that fails does not.
func (t *tracee) checkFilters() error {
	why := ""
	for i := uintptr(0); why == ""; i++ {
		filter := make([]unix.SockFilter, unix.BPF_MAXINSNS) // the kernel writes no more, and returns how many
		n, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SECCOMP_GET_FILTER, uintptr(t.tid), i, uintptr(unsafe.Pointer(&filter[0])), 0, 0)
		switch {
		case e == unix.ENOENT && i > 0: // these were all
			return nil
		case e == unix.ESRCH:
			return e
		case e != 0:
			why = "only root may read, who has none himself"
		}
		for _, nr := range needed {
			if e == 0 && mayEnd(filter[:n], nr) {
				why = fmt.Sprintf("might end it for the call %d, which is needed", nr)
			}
		}
	}
	return errors.New("it has a filter of system calls (seccomp), which " + why + "; start the program with cheap record, or without the filter (Docker: --security-opt seccomp=unconfined)")
}

// mayEnd reports whether a filter does anything with a call, whatever its arguments are, but to allow it or to have it fail. It
// knows the instructions of libseccomp.
func mayEnd(filter []unix.SockFilter, nr uint32) bool {
	const most, archAMD64 = 100_000, 0xc000003e
	steps := 0
	var run func(pc, a uint32, isKnown bool) bool // the register is unknown where it depends on an argument
	run = func(pc, a uint32, isKnown bool) bool {
		for ; steps < most && pc < uint32(len(filter)); steps++ {
			f := filter[pc]
			pc++
			var jumps bool
			switch f.Code {
			case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
				known := map[uint32]uint32{0: nr, 4: archAMD64} // by offset in struct seccomp_data
				a, isKnown = known[f.K]
				continue
			case unix.BPF_ALU | unix.BPF_AND:
				a &= f.K
				continue
			case unix.BPF_JMP | unix.BPF_JA:
				pc += f.K
				continue
			case unix.BPF_RET | unix.BPF_K:
				action := f.K & 0xffff0000
				return action != unix.SECCOMP_RET_ALLOW && action != unix.SECCOMP_RET_LOG && action != unix.SECCOMP_RET_ERRNO
			case unix.BPF_JMP | unix.BPF_JEQ:
				jumps = a == f.K
			case unix.BPF_JMP | unix.BPF_JGT:
				jumps = a > f.K
			case unix.BPF_JMP | unix.BPF_JGE:
				jumps = a >= f.K
			case unix.BPF_JMP | unix.BPF_JSET:
				jumps = a&f.K != 0
			default:
				return true
			}
			if !isKnown && run(pc+uint32(f.Jf), a, false) {
				return true
			}
			if jumps || !isKnown {
				pc += uint32(f.Jt)
			} else {
				pc += uint32(f.Jf)
			}
		}
		return true
	}
	return run(0, 0, false)
}
