//go:build linux && amd64

package attach

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A tracee is a thread that is stopped. All calls of ptrace for it come from one thread of this process.
type tracee struct {
	pid, tid int
	saved    unix.PtraceRegs
	xstate   []byte // the registers of vectors, as XSAVE writes them
	mask     uint64 // the signals that it blocks
	gone     bool   // it goes on already
}

// Requests of linux/ptrace.h that package unix has no functions for.
const (
	getSigmask, setSigmask = 0x420a, 0x420b
	xstateSet              = 0x202
)

// ptrace is the call of the system, which reads or writes data.
func ptrace(request, tid int, addr uintptr, data unsafe.Pointer) error {
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), addr, uintptr(data), 0, 0); e != 0 {
		return e
	}
	return nil
}

// detach has a thread go on, with a signal that has come for it.
func detach(tid int, s unix.Signal) error {
	if _, _, e := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(tid), 0, uintptr(s), 0, 0); e != 0 {
		return e
	}
	return nil
}

var errMoved = errors.New("the thread has gone on")

// seize stops a thread, if it is where it was when it was looked at. If an error is returned, it is not stopped.
func seize(v *sleeper) (t *tracee, err error) {
	t = &tracee{pid: v.pid, tid: v.tid}
	if err := unix.PtraceSeize(t.tid); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil { // nothing has been changed
			reap(v.tid, unix.PtraceDetach(v.tid))
		}
	}()
	if err := unix.PtraceInterrupt(t.tid); err != nil {
		return nil, err
	}
	status, err := wait(t.tid)
	if err != nil {
		return nil, err
	}
	// A stop for PtraceInterrupt has an event. Another one is that of a signal, which is delivered then.
	// A thread that detach has let go is traced no more, and the call by which an error is answered fails.
	if s := status.StopSignal(); !isInterrupt(status) {
		if int(status)>>16 == unix.PTRACE_EVENT_STOP {
			return nil, errMoved // all its threads are stopped, by SIGSTOP
		}
		detach(t.tid, s)
		return nil, errMoved
	}
	if err := unix.PtraceSetOptions(t.tid, unix.PTRACE_O_TRACESYSGOOD); err != nil {
		return nil, err
	}
	if err := unix.PtraceGetRegs(t.tid, &t.saved); err != nil {
		return nil, err
	}
	// It may have gone on, and be in a call like that at another place: FUTEX_WAKE, in a handler of a signal.
	if s := &t.saved; s.Rip != v.pc || s.Rsp != v.sp || s.Orig_rax != v.call || s.Rdi != v.first || s.Rsi != v.second {
		return nil, errMoved
	}
	t.xstate = make([]byte, 64<<10)
	iov := unix.Iovec{Base: &t.xstate[0], Len: uint64(len(t.xstate))}
	if err := ptrace(unix.PTRACE_GETREGSET, t.tid, xstateSet, unsafe.Pointer(&iov)); err != nil {
		return nil, err
	}
	t.xstate = t.xstate[:iov.Len]
	return t, ptrace(getSigmask, t.tid, 8, unsafe.Pointer(&t.mask))
}

func isInterrupt(s unix.WaitStatus) bool {
	return s.Stopped() && int(s)>>16 == unix.PTRACE_EVENT_STOP && s.StopSignal() == unix.SIGTRAP
}

// reap takes note that the thread has ended, if a call of ptrace has failed for that. Until then, a process that was killed
// has not ended for its parent.
func reap(tid int, err error) error {
	if errors.Is(err, unix.ESRCH) {
		if _, late := wait(tid); late == nil {
			unix.PtraceDetach(tid)
		}
	}
	return err
}

// stopPatience is for a thread that does not get a processor, or waits for a disk. It cannot be let go before it has stopped,
// but by the end of this process.
const stopPatience = 10 * time.Second

// wait returns when the thread has stopped, or ended: then the error is ESRCH, or ECHILD for one that is not traced.
func wait(tid int) (status unix.WaitStatus, err error) {
	for end := time.Now().Add(stopPatience); ; {
		n, err := unix.Wait4(tid, &status, unix.WALL|unix.WNOHANG, nil)
		if err == nil && n == tid && !status.Stopped() {
			err = unix.ESRCH
		}
		if err != nil && err != unix.EINTR || n == tid {
			return status, err
		}
		if time.Now().After(end) {
			return status, fmt.Errorf("a thread of it did not stop within %v", stopPatience)
		}
		unix.Nanosleep(&unix.Timespec{Nsec: 20_000}, nil)
	}
}

// release has the thread go on from where it was stopped: its call of the system begins again.
func (t *tracee) release() error {
	if t.gone {
		return nil
	}
	return reap(t.tid, errors.Join(unix.PtraceSetRegs(t.tid, &t.saved), unix.PtraceDetach(t.tid)))
}

// syscall has the thread make a call of the system, by the instruction before which it was stopped. No signal is blocked:
// if one comes before the call, that is given up, and the signal is delivered in the state of before. If this
// process is killed meanwhile, the thread goes on as if its own call had ended early, and with another result, which
// nobody looks at: it is nanosleep or a wait of futex of the Go runtime, which looks for itself what has happened.
func (t *tracee) syscall(nr uint64, args ...uint64) (uint64, error) {
	r := t.saved
	r.Rip -= syscallSize
	r.Rax, r.Orig_rax = nr, ^uint64(0)
	for i, p := range []*uint64{&r.Rdi, &r.Rsi, &r.Rdx, &r.R10} {
		*p = 0
		if i < len(args) {
			*p = args[i]
		}
	}
	if err := unix.PtraceSetRegs(t.tid, &r); err != nil {
		return 0, err
	}
	// Two stops, before the call and after it. Not by a step: its SIGTRAP would end the program if this process is killed.
	for range 2 {
		if err := unix.PtraceSyscall(t.tid, 0); err != nil {
			return 0, err
		}
		status, err := wait(t.tid)
		if err != nil {
			return 0, err
		}
		if s := status.StopSignal(); s != unix.SIGTRAP|0x80 {
			t.gone = true
			err := unix.PtraceSetRegs(t.tid, &t.saved)
			return 0, errors.Join(errMoved, err, detach(t.tid, s))
		}
	}
	if err := unix.PtraceGetRegs(t.tid, &r); err != nil {
		return 0, err
	}
	if e := -int64(r.Rax); e > 0 && e < 4096 {
		return 0, unix.Errno(e)
	}
	if r.Rip != t.saved.Rip {
		return 0, fmt.Errorf("the thread is at %#x after a call", r.Rip)
	}
	return r.Rax, nil
}

// blocked returns the signals that the thread blocks now: others than before while it is in call.
func (t *tracee) blocked() (mask uint64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", t.pid, t.tid))
	fmt.Sscanf(of(string(text), "SigBlk"), "%x", &mask)
	return mask
}

const (
	syscallSize = 2   // bytes of the instruction
	redZone     = 128 // bytes below the stack pointer that are in use

	// callRoom is how much stack the call gets: dlopen takes a few KiB, and the registers of vectors up to 11.
	callRoom = 64 << 10
)

// call has the thread call a function of C, with the signals blocked, and then go on from where it was: the function
// returns into rt_sigreturn, for which the state of before lies on the stack. So the thread does that by itself,
// whether this process lives or not. It runs on the stack of the thread, as C that Go calls does. The function gets a
// text and a number.
func (t *tracee) call(f, restorer uint64, text string, number uint64) error {
	frame := t.frame(restorer)
	textAt := uint64(len(frame))
	frame = append(frame, text+"\x00"...)
	sp := (t.saved.Rsp-redZone-uint64(len(frame)))&^63 - 8 // the registers of vectors lie at a multiple of 64
	binary.LittleEndian.PutUint64(frame[fpstateAt:], sp+8+fpstateOffset)
	if err := write(t.pid, sp, frame); err != nil {
		return err
	}
	r := t.saved
	r.Rip, r.Orig_rax, r.Rax, r.Rsp, r.Rbp = f, ^uint64(0), 0, sp, 0
	r.Rdi, r.Rsi = sp+textAt, number
	const directionFlag = 0x400
	r.Eflags &^= directionFlag
	// Signals of faults are not blocked: the kernel would take the handlers of the process away. Nor are those by which
	// the C library has all threads change their user, and cancels one; musl has the last for that.
	mask := ^uint64(0)
	for _, s := range []int{4, 5, 7, 8, 11, 31, 32, 33, 34} {
		mask &^= 1 << (s - 1)
	}
	if err := unix.PtraceSetRegs(t.tid, &r); err != nil {
		return err
	}
	if err := ptrace(setSigmask, t.tid, 8, unsafe.Pointer(&mask)); err != nil {
		return err
	}
	t.gone = true
	return unix.PtraceDetach(t.tid)
}

// Where parts of the frame lie: the address of rt_sigreturn, struct ucontext, whose first field says that the registers of
// vectors are those of XSAVE, and these.
const (
	ucontextRegs  = 5 // words before them
	fpstateWord   = ucontextRegs + 23
	fpstateAt     = 8 * (1 + fpstateWord)
	maskWord      = ucontextRegs + 32
	fpstateOffset = 384 // behind the address
)

// frame returns what rt_sigreturn reads, but for the address of the registers of vectors.
func (t *tracee) frame(restorer uint64) []byte {
	s := &t.saved
	words := make([]uint64, maskWord+1)
	words[0] = 1 // UC_FP_XSTATE. A stack of signals with the size 0 is none that is set: the thread keeps its own
	copy(words[ucontextRegs:], []uint64{
		s.R8, s.R9, s.R10, s.R11, s.R12, s.R13, s.R14, s.R15, s.Rdi, s.Rsi, s.Rbp, s.Rbx, s.Rdx, s.Rax, s.Rcx, s.Rsp, s.Rip, s.Eflags,
		s.Cs&0xffff | s.Ss<<48,
	})
	const rax, rip, restart = ucontextRegs + 13, ucontextRegs + 16, -512
	if int64(s.Rax) <= restart { // its call of the system has not ended, and begins again
		words[rax], words[rip] = s.Orig_rax, s.Rip-syscallSize
	}
	words[maskWord] = t.mask
	b := binary.LittleEndian.AppendUint64(nil, restorer)
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	b = append(b, make([]byte, fpstateOffset+8-len(b))...)
	// Marks say that more than 512 bytes are there, and how many (struct _fpx_sw_bytes).
	// Those of matrices (AMX), which come last, are not: a process has none unless it asks for them, and the
	// kernel refuses a frame that is too long.
	const amx, withoutAMX = 3 << 17, 2696
	features := binary.LittleEndian.Uint64(t.xstate[464:])
	x := t.xstate
	if features&amx != 0 {
		x = x[:withoutAMX]
	}
	x = append([]byte{}, x...)
	size := uint32(len(x))
	features &^= amx
	binary.LittleEndian.PutUint32(x[464:], 0x46505853)
	binary.LittleEndian.PutUint32(x[468:], size+4)
	binary.LittleEndian.PutUint64(x[472:], features)
	binary.LittleEndian.PutUint32(x[480:], size)
	x = binary.LittleEndian.AppendUint32(x, 0x46505845)
	return append(b, x...)
}

func write(pid int, at uint64, b []byte) error {
	local := unix.Iovec{Base: &b[0], Len: uint64(len(b))}
	n, err := unix.ProcessVMWritev(pid, []unix.Iovec{local}, []unix.RemoteIovec{{Base: uintptr(at), Len: len(b)}}, 0)
	if err == nil && n != len(b) {
		err = unix.EFAULT
	}
	return err
}

func read(pid int, at uint64, b []byte) int {
	local := unix.Iovec{Base: &b[0], Len: uint64(len(b))}
	n, _ := unix.ProcessVMReadv(pid, []unix.Iovec{local}, []unix.RemoteIovec{{Base: uintptr(at), Len: len(b)}}, 0)
	return max(n, 0)
}
