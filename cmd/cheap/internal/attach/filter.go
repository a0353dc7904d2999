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

// A word of a filter is unknown where it depends on an argument of the call.
type word struct {
	is      uint32
	isKnown bool
}

// mayEnd reports whether a filter does anything with a call, whatever its arguments are, but to allow it or to have it fail.
func mayEnd(filter []unix.SockFilter, nr uint32) bool {
	const most = 100_000
	steps := 0
	var run func(pc uint32, a, x word, memory [unix.BPF_MEMWORDS]word) bool
	run = func(pc uint32, a, x word, memory [unix.BPF_MEMWORDS]word) bool {
		for ; steps < most && pc < uint32(len(filter)); steps++ {
			f := filter[pc]
			k := word{f.K, true}
			pc++
			switch f.Code {
			case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
				const archAMD64 = 0xc000003e
				a = map[uint32]word{0: {nr, true}, 4: {archAMD64, true}}[f.K]
			case unix.BPF_LD | unix.BPF_IMM:
				a = k
			case unix.BPF_LDX | unix.BPF_IMM:
				x = k
			case unix.BPF_LD | unix.BPF_MEM:
				a = memory[f.K]
			case unix.BPF_LDX | unix.BPF_MEM:
				x = memory[f.K]
			case unix.BPF_ST:
				memory[f.K] = a
			case unix.BPF_STX:
				memory[f.K] = x
			case unix.BPF_MISC | unix.BPF_TAX:
				x = a
			case unix.BPF_MISC | unix.BPF_TXA:
				a = x
			case unix.BPF_JMP | unix.BPF_JA:
				pc += f.K
			case unix.BPF_RET | unix.BPF_K, unix.BPF_RET | unix.BPF_A:
				if f.Code&unix.BPF_A != 0 {
					k = a
				}
				const action = 0xffff0000
				is := k.is & action
				return !k.isKnown || is != unix.SECCOMP_RET_ALLOW && is != unix.SECCOMP_RET_LOG && is != unix.SECCOMP_RET_ERRNO
			default:
				if f.Code&unix.BPF_X != 0 {
					k = x
				}
				var jumps bool
				switch f.Code &^ unix.BPF_X {
				case unix.BPF_JMP | unix.BPF_JEQ:
					jumps = a.is == k.is
				case unix.BPF_JMP | unix.BPF_JGT:
					jumps = a.is > k.is
				case unix.BPF_JMP | unix.BPF_JGE:
					jumps = a.is >= k.is
				case unix.BPF_JMP | unix.BPF_JSET:
					jumps = a.is&k.is != 0
				default: // arithmetic, which is about arguments, and what is new
					if f.Code&7 != unix.BPF_ALU {
						return true
					}
					a = word{}
					continue
				}
				if isKnown := a.isKnown && k.isKnown; !isKnown && run(pc+uint32(f.Jf), a, x, memory) {
					return true
				} else if jumps || !isKnown {
					pc += uint32(f.Jt)
				} else {
					pc += uint32(f.Jf)
				}
			}
		}
		return true
	}
	return run(0, word{}, word{}, [unix.BPF_MEMWORDS]word{})
}
