//go:build linux && amd64

// Package attach loads a library into a Go program that runs, and leaves the program as it was otherwise.
//
//  1. Open reads /proc, and refuses a process in a sentence; nothing is stopped.
//  2. Load looks for a thread that sleeps in the runtime of Go: /proc/PID/task/T/syscall says where each is. The first
//     choice is the one of runtime.sysmon, for which nobody waits; else one that waits in runtime.futex. A
//     thread in C, or in a wait for the network, is never taken: its call would end with EINTR.
//  3. The thread is stopped (ptrace), makes two memory files (memfd_create), and is let go. This process
//     writes the library into one, and maps the other, which both share.
//  4. A thread is stopped again, and let go in dlopen, from which it comes back to where it was by itself.
//
// The library does the rest in a thread of its own: see cmem/source/attach.c.
package attach

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cheapgo/cheap/cmd/cheap/internal/executable"
	"github.com/cheapgo/cheap/cmd/cheap/internal/shared"
	"github.com/cheapgo/cheap/internal/watch/procfs"
)

// Most is how many times a library is loaded into one process. Each stays, and takes a part of what the C library
// keeps for variables of threads: the program must not run out of that.
const Most = 4

// memoryName is that of the memory file of a library, as maps of the process show it.
const memoryName = "cheap-attach"

// helper is the name of the thread of the library.
const helper = "cheap record"

// A Target is a process that a library can be loaded into.
type Target struct {
	Pid     int
	Program *executable.Program
	file    *os.File // the program, which stays when the process ends, and so does its folder /
	root    *os.File
	image   shared.Image
	base    uint64 // what is to be added to addresses of the program
	libc    string // a path to its C library
	dlopen  uint64
	mode    uint64 // for that
	sigret  uint64 // code that calls rt_sigreturn
	loaded  int    // libraries of this package
	filters string // how many filters of system calls each thread has
}

// Open looks at a process. An error says in a sentence why nothing can be loaded, and what to do.
func Open(pid int) (*Target, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil, fmt.Errorf("there is no process %d", pid)
	}
	field := func(name string) string { return of(string(status), name) }
	if strings.HasPrefix(field("State"), "Z") {
		return nil, fmt.Errorf("process %d has ended; its parent has not asked for its exit code yet (a zombie)", pid)
	}
	image := shared.ImageOf(pid)
	t, err := open(pid, field)
	if image.Gone() { // what was read is not of one program
		return nil, errGone(pid)
	} else if err != nil {
		return nil, err
	}
	t.image = image
	return t, nil
}

// of returns what a file of the kernel has behind a name.
func of(status, name string) string {
	_, rest, _ := strings.Cut(status, "\n"+name+":\t")
	value, _, _ := strings.Cut(rest, "\n")
	return value
}

func errGone(pid int) error {
	return fmt.Errorf("process %d has ended meanwhile, or has become another program (exec)", pid)
}

// open looks at a process, of whose status field returns what has a name.
func open(pid int, field func(name string) string) (*Target, error) {
	switch {
	case pid == os.Getpid():
		return nil, fmt.Errorf("process %d is this command", pid)
	case field("TracerPid") != "0":
		return nil, fmt.Errorf("process %d is traced by %s, such as a debugger or strace; a process has one tracer, so end that first", pid, field("TracerPid"))
	case strings.HasPrefix(field("State"), "T"):
		return nil, fmt.Errorf("process %d is stopped (SIGSTOP); have it go on, with kill -CONT %d", pid, pid)
	case field("Tgid") != strconv.Itoa(pid):
		return nil, fmt.Errorf("%d is a thread of process %s; name the process", pid, field("Tgid"))
	}
	if strings.Contains(field("x86_Thread_features"), "shstk") {
		return nil, fmt.Errorf("process %d has a shadow stack (CET), with which a call cannot be made from outside; start the program with cheap record", pid)
	}
	const sameMemory = 1 // KCMP_VM
	if parent, _ := strconv.Atoi(field("PPid")); parent > 0 {
		if r, _, e := unix.Syscall6(unix.SYS_KCMP, uintptr(pid), uintptr(parent), sameMemory, 0, 0, 0); e == 0 && r == 0 {
			return nil, fmt.Errorf("process %d runs in the memory of process %d until it starts a program (vfork)", pid, parent)
		}
	}
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if name := of("\n"+string(text), "Name"); name == helper {
			return nil, fmt.Errorf("process %d is recorded already; if that command was killed, the library ends within five seconds", pid)
		}
		if err == nil && of(string(text), "Seccomp_filters") != field("Seccomp_filters") {
			return nil, fmt.Errorf("threads of process %d have filters of system calls (seccomp) of their own, which might end it; start the program with cheap record", pid)
		}
	}
	exe := fmt.Sprintf("/proc/%d/exe", pid)
	path, err := os.Readlink(exe)
	if errors.Is(err, os.ErrPermission) {
		return nil, errDenied(pid)
	} else if err != nil {
		return nil, fmt.Errorf("process %d has no program: it is a thread of the kernel, or it ends", pid)
	}
	t := &Target{Pid: pid, filters: field("Seccomp_filters")}
	all, err := maps(pid)
	if err == nil {
		t.root, err = os.OpenFile(fmt.Sprintf("/proc/%d/root", pid), unix.O_PATH, 0)
	}
	if err == nil {
		t.file, err = os.Open(exe)
	}
	if err != nil {
		return nil, errDenied(pid)
	}
	if t.Program, err = executable.Open(exe); err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), exe, fmt.Sprintf("process %d, %s,", pid, path)))
	}
	t.Program.Path, t.Program.At = strings.TrimSuffix(path, " (deleted)"), shared.In(t.file, "")
	if err := t.find(all, path); err != nil {
		return nil, err
	}
	if !t.Program.IsGo {
		return nil, fmt.Errorf("process %d, %s, is no Go program whose tables are known (Go 1.20 and later); only a thread that sleeps in the runtime of Go is taken", pid, path)
	}
	return t, nil
}

// Close closes the files of the process. The file of Load needs them for names.
func (t *Target) Close() error { return errors.Join(t.file.Close(), t.root.Close()) }

// errDenied says what to do where the kernel forbids it.
func errDenied(pid int) error {
	why := "it is another user's, or has other rights"
	if text, err := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); err == nil && text[0] != '0' {
		why = "kernel.yama.ptrace_scope is " + strings.TrimSpace(string(text))
	}
	return fmt.Errorf("the kernel does not let this command look into process %d: %s; run it with sudo, or sysctl kernel.yama.ptrace_scope=0 for programs of the same user, or in a container with the capability SYS_PTRACE: kubectl debug --target=… --profile=general, docker run --cap-add=SYS_PTRACE --pid=container:…", pid, why)
}

// find finds what is to be called.
func (t *Target) find(all []procfs.Mapping, program string) error {
	var libc *procfs.Mapping
	for i := range all {
		m := &all[i]
		name := filepath.Base(m.Name)
		switch {
		case m.Offset != 0:
		case strings.HasPrefix(name, "memfd:"+memoryName) && !m.Write: // the other file is shared
			t.loaded++
		case m.Name == program && t.base == 0:
			t.base = m.Start
		case name == "libc.so.6", strings.HasPrefix(name, "libc-2."): // before glibc 2.34 the first is a link to the second
			libc = m
		case t.Program.Musl && (name == "libc.so" || strings.HasPrefix(name, "ld-musl-")): // likewise
			libc = m
		}
	}
	var addresses unix.Rlimit
	unix.Prlimit(t.Pid, unix.RLIMIT_AS, nil, &addresses)
	switch {
	case addresses.Cur < 2*shared.Size:
		return fmt.Errorf("process %d has a limit of addresses (ulimit -v), and the file that it would share with this command takes %d GiB of them; start it without", t.Pid, shared.Size>>30)
	case libc == nil:
		return fmt.Errorf("process %d, %s, has no C library, so it has no C heap; Go's memory is in the profile heap of net/http/pprof", t.Pid, program)
	case t.loaded >= Most:
		return fmt.Errorf("process %d has had the library loaded %d times, which is the most: what each leaves stays until the program ends", t.Pid, t.loaded)
	}
	f, err := elf.Open(fmt.Sprintf("/proc/%d/exe", t.Pid))
	if err != nil {
		return err
	}
	defer f.Close()
	if t.base -= firstAddress(f); f.Type == elf.ET_EXEC {
		t.base = 0
	}
	symbols, _ := f.DynamicSymbols()
	if slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return s.Name == "malloc" && s.Section != elf.SHN_UNDEF }) {
		return fmt.Errorf("process %d has an allocator linked in, or module cmem, whose page shows the same", t.Pid)
	}
	t.libc, t.mode = shared.In(t.root, libc.Name), rtldNow
	if _, err := os.Stat(t.libc); err != nil { // it was replaced since, or the process is in a chroot: by the link of the kernel
		t.libc = fmt.Sprintf("/proc/%d/map_files/%x-%x", t.Pid, libc.Start, libc.End)
	}
	if t.dlopen, err = t.symbol(libc, "dlopen"); err != nil { // before glibc 2.34 it is in a library of its own
		t.mode |= 1 << 31 // __RTLD_DLOPEN
		if t.dlopen, err = t.symbol(libc, "__libc_dlopen_mode"); err != nil {
			return err
		}
	}
	t.sigret, err = t.sigreturn(all, libc.Name)
	return err
}

func firstAddress(f *elf.File) uint64 {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			return p.Vaddr - p.Off
		}
	}
	return 0
}

// symbol returns where a function of the C library lies in the process.
func (t *Target) symbol(library *procfs.Mapping, name string) (uint64, error) {
	f, err := elf.Open(t.libc)
	if err != nil {
		return 0, fmt.Errorf("%s of process %d cannot be read: %w", library.Name, t.Pid, err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return 0, err
	}
	for _, s := range symbols {
		if s.Name == name && s.Section != elf.SHN_UNDEF && elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			at := library.Start - firstAddress(f) + s.Value
			// The file must be the one that is mapped: after an upgrade another one has the name.
			var disk, memory [16]byte
			section := f.Sections[s.Section]
			section.ReadAt(disk[:], int64(s.Value-section.Addr))
			if read(t.Pid, at, memory[:]) != len(memory) || disk != memory {
				return 0, fmt.Errorf("%s is another file than the one that process %d has mapped; start the program again", library.Name, t.Pid)
			}
			return at, nil
		}
	}
	return 0, fmt.Errorf("%s of process %d has no %s", library.Name, t.Pid, name)
}

// sigreturn finds code of the C library that calls rt_sigreturn, as handlers of signals return to.
func (t *Target) sigreturn(all []procfs.Mapping, libc string) (uint64, error) {
	code := []byte{0x48, 0xc7, 0xc0, unix.SYS_RT_SIGRETURN, 0, 0, 0, 0x0f, 0x05}
	for _, m := range all {
		if m.Name != libc || !m.Exec {
			continue
		}
		text := make([]byte, m.End-m.Start)
		if i := bytes.Index(text[:read(t.Pid, m.Start, text)], code); i >= 0 {
			return m.Start + uint64(i), nil
		}
	}
	return 0, fmt.Errorf("%s of process %d has no code for the return of a signal", libc, t.Pid)
}

// maps returns what the process has mapped.
func maps(pid int) (all []procfs.Mapping, err error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	err = procfs.Mappings(f, func(m procfs.Mapping) bool { all = append(all, m); return true })
	return all, err
}

// A sleeper is a thread that sleeps in a call of the system, made in the runtime of Go.
type sleeper struct {
	pid, tid                    int
	call, first, second, sp, pc uint64
}

// sleepers returns the threads that may be taken, that of sysmon first. It stops none.
func (t *Target) sleepers() (found []*sleeper, err error) {
	all, err := maps(t.Pid)
	if err != nil {
		return nil, err
	}
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", t.Pid))
	var others []*sleeper
	for _, thread := range threads {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/syscall", t.Pid, thread.Name()))
		if errors.Is(err, os.ErrPermission) {
			return nil, errDenied(t.Pid)
		}
		f := strings.Fields(string(text))
		if len(f) < 9 { // it runs, or has ended
			continue
		}
		s := &sleeper{pid: t.Pid}
		s.tid, _ = strconv.Atoi(thread.Name())
		for i, to := range map[int]*uint64{0: &s.call, 1: &s.first, 2: &s.second, 7: &s.sp, 8: &s.pc} {
			*to, _ = strconv.ParseUint(f[i], 0, 64)
		}
		const wait, bitset = 0, 9
		isFutex := t.function(s.pc) == "runtime.futex" && s.call == unix.SYS_FUTEX && (s.second&0x7f == wait || s.second&0x7f == bitset)
		isSleep := t.function(s.pc) == "runtime.usleep" && s.call == unix.SYS_NANOSLEEP
		if !isFutex && !isSleep || !hasRoom(all, s.sp) || !isBehindCall(t.Pid, s.pc) {
			continue
		}
		switch sysmon, ofRuntime := t.look(s.sp); {
		case sysmon:
			found = append(found, s)
		case isFutex && ofRuntime:
			others = append(others, s)
		}
	}
	return append(found, others...), nil
}

// isBehindCall reports whether the instruction before an address is one that calls the system. It is none where the call is about
// to begin again: the kernel has gone back to the instruction, and the thread may wait a moment on its way there.
func isBehindCall(pid int, pc uint64) bool {
	var code [syscallSize]byte
	return read(pid, pc-syscallSize, code[:]) == len(code) && code == [...]byte{0x0f, 0x05}
}

func (t *Target) function(pc uint64) string {
	frames := t.Program.Frames(pc - t.base)
	if len(frames) == 0 {
		return ""
	}
	return frames[len(frames)-1].Function
}

// look reports whether a stack is that of runtime.sysmon, and whether the runtime has begun it. Else Go code on it was called
// back by C, which may hold locks.
func (t *Target) look(sp uint64) (sysmon, ofRuntime bool) {
	const words = 256
	b := make([]byte, words*8)
	b = b[:read(t.Pid, sp, b)]
	for ; len(b) >= 8; b = b[8:] {
		pc := binary.LittleEndian.Uint64(b)
		if at := pc - t.base; at < t.Program.Text.From || at >= t.Program.Text.To {
			continue
		}
		switch name := t.function(pc); {
		case name == "runtime.sysmon":
			sysmon = true
		case strings.HasPrefix(name, "runtime.mstart"):
			return sysmon, true
		case name == "crosscall2" || strings.HasPrefix(name, "runtime.cgocallback"):
			return false, false
		}
	}
	return false, false
}

// hasRoom reports whether enough of a stack lies below the stack pointer. That of a goroutine is too short.
func hasRoom(all []procfs.Mapping, sp uint64) bool {
	for _, m := range all {
		if sp >= m.Start && sp < m.End {
			return sp-m.Start >= callRoom && m.Read && m.Write
		}
	}
	return false
}

// patience is how long a thread is looked for that may be taken.
const patience = 2 * time.Second

// with has a function work with a thread that is stopped, which goes on afterwards.
func (t *Target) with(f func(*tracee) error) error {
	last := errors.New("no thread sleeps in the runtime of Go, at a place where it may be taken")
	for end := time.Now().Add(patience); time.Now().Before(end) && !t.image.Gone(); unix.Nanosleep(&unix.Timespec{Nsec: 1_000_000}, nil) {
		all, err := t.sleepers()
		if err != nil {
			return err
		}
		for _, s := range all {
			tracee, err := seize(s)
			if err == nil {
				if err = errMoved; !t.image.Gone() { // else no address is right; from here on, exec ends the thread
					err = f(tracee)
				}
				if wrong := tracee.release(); err == nil {
					err = wrong
				}
			}
			switch {
			case errors.Is(err, errMoved), errors.Is(err, unix.ESRCH): // or it has ended
				last = err
			case errors.Is(err, unix.EPERM):
				return errDenied(t.Pid)
			default:
				return err
			}
		}
	}
	return fmt.Errorf("within %v %w", patience, last)
}

const rtldNow = 2

// Load loads a library of shared.Build, which samples with a rate. It returns the file that both share, when the
// slots have been changed. After an error the process goes on as before.
func (t *Target) Load(library string, rate int) (*shared.File, error) {
	file, err := t.load(library, rate)
	switch {
	case err == nil:
	case t.image.Gone():
		err = errGone(t.Pid)
	default:
		err = fmt.Errorf("process %d goes on as before: %w", t.Pid, err)
	}
	return file, err
}

func (t *Target) load(library string, rate int) (file *shared.File, err error) {
	image, err := os.ReadFile(library)
	if err = errors.Join(err, shared.Fits(library, t.libc)); err != nil {
		return nil, err
	}
	runtime.LockOSThread() // all calls of ptrace come from one thread
	defer runtime.UnlockOSThread()
	var fds []uint64
	defer func() {
		if err != nil && len(fds) > 0 {
			t.with(func(x *tracee) error { return t.closeAll(x, &fds) })
		}
	}()
	err = t.with(func(x *tracee) error {
		if t.filters != "0" {
			if err := x.checkFilters(); err != nil {
				return err
			}
		}
		at := (x.saved.Rsp - redZone - 64) &^ 7
		name := fmt.Sprintf("%s-%d-%d\x00", memoryName, os.Getpid(), time.Now().UnixNano())
		if err := write(t.Pid, at, []byte(name)); err != nil {
			return err
		}
		for len(fds) < 2 {
			fd, err := x.syscall(unix.SYS_MEMFD_CREATE, at, unix.MFD_CLOEXEC)
			if err != nil {
				return fmt.Errorf("memfd_create: %w", err)
			}
			fds = append(fds, fd)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var inodes [2]unix.Stat_t
	var names [2]string
	for i, fd := range fds {
		names[i] = fmt.Sprintf("/proc/%d/fd/%d", t.Pid, fd)
		if err := unix.Stat(names[i], &inodes[i]); err != nil {
			return nil, err
		}
	}
	mapped, err := shared.Map(names[1], t.image, t.root)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			mapped.Close()
		}
	}()
	if err := patch(image, rate, fds, inodes); err != nil {
		return nil, err
	}
	if err := os.WriteFile(names[0], image, 0); err != nil {
		return nil, err
	}
	mapped.SetGo(t.Program, 0)
	mapped.Want()
	var caller *tracee
	err = t.with(func(x *tracee) error {
		caller = x
		// By a name that was loaded before, dlopen would return that library.
		name := fmt.Sprintf("/proc/self/fd%s/%d", strings.Repeat("/.", t.loaded), fds[0])
		return x.call(t.dlopen, t.sigret, name, t.mode)
	})
	if err != nil {
		return nil, err
	}
	if err := mapped.WaitAttached(loadPatience); err != nil {
		if caller.blocked() != caller.mask { // it is about to open the file, or has: the library closes both
			fds = nil
		}
		return nil, err
	}
	fds = nil // the library has closed them
	return mapped, nil
}

// loadPatience is for the dynamic linker: somebody else may be loading a library.
var loadPatience = 10 * time.Second

// closeAll closes the memory files in the process.
func (t *Target) closeAll(x *tracee, fds *[]uint64) error {
	for len(*fds) > 0 {
		if link, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", t.Pid, (*fds)[0])); strings.HasPrefix(link, "/memfd:"+memoryName) {
			if _, err := x.syscall(unix.SYS_CLOSE, (*fds)[0]); err != nil {
				return err
			}
		}
		*fds = (*fds)[1:]
	}
	return nil
}

// patch writes struct attach of cmem/source/attach.c into the library.
func patch(image []byte, rate int, fds []uint64, files [2]unix.Stat_t) error {
	magic := []byte("cheap attach v1\x00")
	i := bytes.Index(image, magic)
	if i < 0 {
		return errors.New("the library was made for another processor or C library")
	}
	words := []uint64{
		1, fds[1], files[1].Dev, files[1].Ino, fds[0], files[0].Dev, files[0].Ino, uint64(rate),
	}
	for k, w := range words {
		binary.LittleEndian.PutUint64(image[i+len(magic)+8*k:], w)
	}
	return nil
}
