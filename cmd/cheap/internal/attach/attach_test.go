//go:build cgo && linux && amd64

package attach

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/cheapgo/cheap/cmd/cheap/internal/shared"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/internal/watch/procfs"
)

var cycles = flag.Int("attach.cycles", 24, "attach and detach so many times in TestHammer")

var kills = flag.Int("attach.kills", 8, "kill so many commands in TestKilled")

// helpers are what this program does as a process of its own.
var helpers = map[string]func(args []string){
	"open": func(args []string) { // as another user
		_, err := Open(number(args[0]))
		fmt.Print(err)
	},
	"load": func(args []string) { // until it is killed
		target, err := Open(number(args[0]))
		var file *shared.File
		if err == nil {
			file, err = target.Load(args[1], 1<<10)
		}
		for err == nil {
			file.Beat()
			unix.Nanosleep(&unix.Timespec{Nsec: 1_000_000}, nil)
		}
		fmt.Print(err)
	},
	"filter": func(args []string) { // start a program with filters
		runtime.LockOSThread()
		unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		filter := filterOf(uint32(number(args[0])), unix.SECCOMP_RET_KILL_PROCESS)
		p := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
		err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&p)), 0, 0)
		if err == nil {
			err = syscall.Exec(args[1], args[1:], os.Environ())
		}
		fmt.Println(err)
	},
}

func number(text string) (n int) {
	fmt.Sscan(text, &n)
	return n
}

var folder string

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && helpers[os.Args[1]] != nil {
		helpers[os.Args[1]](os.Args[2:])
		return
	}
	var err error
	if folder, err = os.MkdirTemp("", "cheap-test-"); err != nil {
		panic(err)
	}
	os.Chmod(folder, 0o755)
	was := os.Getenv("CC")
	for _, cc := range []string{cmp.Or(was, "cc"), "musl-gcc"} {
		if _, err := exec.LookPath(cc); err != nil || len(kits) > 0 && was == cc {
			continue
		}
		k, err := makeKit(cc)
		if err != nil {
			panic(err)
		}
		kits = append(kits, k)
	}
	os.Setenv("CC", was)
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// A kit is what the tests need, made by one C compiler.
type kit struct {
	isMusl           bool
	library, program string   // the program is testdata/attached of cmd/cheap
	passes           []string // libraries that it loads and unloads
}

// kits are that of the compiler of the environment and, where there is a compiler for it, one for musl.
var kits []*kit

func makeKit(cc string) (k *kit, err error) {
	at := filepath.Join(folder, filepath.Base(cc))
	k = &kit{isMusl: strings.Contains(cc, "musl"), program: filepath.Join(at, "attached")}
	os.Setenv("CC", cc)
	if err = os.Mkdir(at, 0o755); err == nil {
		k.library, err = shared.Build(at)
	}
	if err == nil {
		err = testchild.Build(k.program, []string{"CGO_ENABLED=1"}, "-ldflags=-extldflags=-Wl,--eh-frame-hdr", "../../testdata/attached")
	}
	for i := 0; i < 3 && err == nil; i++ {
		k.passes = append(k.passes, filepath.Join(at, fmt.Sprintf("passes%d.so", i)))
		err = shares(cc, k.passes[i], `void pass(void (*f)(void)) { f(); __asm__ volatile (""); }`)
	}
	return k, err
}

// shares makes a shared library.
func shares(cc, file, source string) error {
	c := exec.Command(cc, "-shared", "-fPIC", "-Wl,--eh-frame-hdr", "-o", file, "-x", "c", "-")
	c.Stdin = strings.NewReader(source)
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	return nil
}

// A process is a run of the program.
type process struct {
	*exec.Cmd
	kit    *kit
	input  io.WriteCloser
	output *bufio.Reader
}

func start(t *testing.T, mode string) *process {
	t.Helper()
	return kits[0].start(t, kits[0].program, mode)
}

// start starts the program by a command.
func (k *kit) start(t *testing.T, command ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(command[0], command[1:]...), kit: k}
	p.Stderr = os.Stderr
	p.input, _ = p.StdinPipe()
	out, _ := p.StdoutPipe()
	p.output = bufio.NewReader(out)
	testcall.Must(t, p.Start())
	t.Cleanup(func() { p.Process.Kill(); p.Wait() })
	if line, err := p.output.ReadString('\n'); line != "ready\n" {
		t.Fatal(line, err)
	}
	return p
}

// end has the program end, and fails if it has met anything wrong.
func (p *process) end(t *testing.T) {
	t.Helper()
	p.input.Close()
	text, _ := io.ReadAll(p.output)
	if err := p.Wait(); err != nil || string(text) != "bad 0 interrupted 0\n" {
		t.Fatalf("%v: %s", err, text)
	}
}

// helpers counts the threads of the library.
func (p *process) helpers() (n int) {
	all, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", p.Process.Pid))
	for _, name := range all {
		if text, _ := os.ReadFile(name); string(text) == helper+"\n" {
			n++
		}
	}
	return n
}

// lines returns a line of the status of each thread.
func (p *process) lines(name string) (all []string) {
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.Process.Pid))
	for _, file := range names {
		if text, err := os.ReadFile(file); err == nil {
			all = append(all, of(string(text), name))
		}
	}
	return all
}

// files returns the files of the command and the library that the process has open.
func (p *process) files() (all []string) {
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p.Process.Pid))
	for _, name := range names {
		if link, _ := os.Readlink(name); strings.Contains(link, "memfd") || strings.HasSuffix(link, "/mem") {
			all = append(all, link)
		}
	}
	return all
}

func (p *process) attach(t *testing.T) *shared.File {
	t.Helper()
	testwait.Until(t, "the last one has ended", func() bool { return p.helpers() == 0 })
	target, err := Open(p.Process.Pid)
	testcall.Must(t, err)
	file, err := target.Load(p.kit.library, 1<<10)
	testcall.Must(t, err)
	return file
}

func end(t *testing.T, file *shared.File) {
	t.Helper()
	if left, err := file.Detach(time.Minute); err != nil || left != 0 {
		t.Fatalf("%d slots are left: %v", left, err)
	}
	testcall.Must(t, file.Close())
}

// TestHammer attaches and detaches, again and again, while the threads of the program allocate, fork, get signals, and collect
// garbage, and unload libraries, or sleep in calls that end with EINTR if their thread is stopped.
func TestHammer(t *testing.T) {
	for n := 0; n < *cycles; {
		mode, k := []string{"storm", "calls"}[n/Most%2], kits[n/Most/2%len(kits)]
		p := k.start(t, append([]string{k.program, mode}, k.passes...)...)
		for range Most {
			n++
			file := p.attach(t)
			was, err := file.Counts()
			testcall.Must(t, err)
			testwait.Until(t, "calls are counted", func() bool {
				file.Beat()
				is, err := file.Counts()
				return err == nil && is.Mallocs > was.Mallocs+1000 && is.Frees > was.Frees
			})
			if file.Slots() < 4 {
				t.Fatalf("%d slots", file.Slots())
			}
			end(t, file)
		}
		testwait.Until(t, "the threads of the library end", func() bool { return p.helpers() == 0 })
		if files := p.files(); len(files) > 0 {
			t.Fatalf("%q are left", files)
		}
		if _, err := Open(p.Process.Pid); err == nil || !strings.Contains(err.Error(), "which is the most") {
			t.Fatalf("one more: %v", err)
		}
		p.end(t)
	}
}

// TestUnheard has the library end by itself when nobody says that he lives.
func TestUnheard(t *testing.T) {
	t.Parallel()
	p := start(t, "storm")
	file := p.attach(t)
	if p.helpers() != 1 {
		t.Fatalf("%d threads", p.helpers())
	}
	testwait.Until(t, "the library ends", file.Ended)
	if left, err := file.Detach(time.Minute); left != 0 || err != nil {
		t.Fatal(left, err)
	}
	p.end(t)
}

// TestRefused has processes that nothing can be loaded into.
func TestRefused(t *testing.T) {
	t.Parallel()
	build := func(name string, env []string, preamble string, args ...string) *exec.Cmd {
		source := filepath.Join(folder, name+".go")
		err := os.WriteFile(source, []byte("package main\n"+preamble+"import \"os\"\nfunc main() { os.Stdin.Read(make([]byte, 1)) }\n"), 0o600)
		path := filepath.Join(folder, name)
		c := exec.Command("go", append([]string{"build", "-o", path}, append(args, source)...)...)
		c.Env = append(os.Environ(), env...)
		if text, wrong := c.CombinedOutput(); err != nil || wrong != nil {
			t.Fatal(err, wrong, string(text))
		}
		return exec.Command(path)
	}
	run := func(c *exec.Cmd) *exec.Cmd {
		if _, err := c.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		testcall.Must(t, c.Start())
		t.Cleanup(func() { c.Process.Kill(); c.Wait() })
		return c
	}
	traced, stopped := start(t, "calls"), start(t, "calls")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	testcall.Must(t, unix.PtraceSeize(traced.Process.Pid))
	stopped.Process.Signal(syscall.SIGSTOP)
	zombie := exec.Command("/bin/true")
	testcall.Must(t, zombie.Start())
	t.Cleanup(func() { zombie.Wait() })
	isState := func(pid int, state string) func() bool {
		return func() bool {
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			return strings.Contains(string(text), "\nState:\t"+state)
		}
	}
	testwait.Until(t, "it is a zombie", isState(zombie.Process.Pid, "Z"))
	testwait.Until(t, "it is stopped", isState(stopped.Process.Pid, "T"))
	limited := start(t, "calls")
	testcall.Must(t, unix.Prlimit(limited.Process.Pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: 10 << 30, Max: 10 << 30}, nil))
	cat := run(exec.Command("/bin/cat"))
	testwait.Until(t, "cat has its libraries", func() bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", cat.Process.Pid))
		return strings.HasPrefix(string(text), "0 0x0 ") // it reads
	})
	own := run(build("own", nil, "// void *__libc_malloc(long); void *malloc(long n) { return __libc_malloc(n); }\nimport \"C\"\n"))
	testwait.Until(t, "a program has libc", func() bool {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/maps", own.Process.Pid))
		return strings.Contains(string(text), "/libc.so")
	})
	for _, c := range []struct {
		pid  int
		want string
	}{
		{1 << 30, "there is no process 1073741824"},
		{os.Getpid(), "is this command"},
		{zombie.Process.Pid, "(a zombie)"},
		{stopped.Process.Pid, "is stopped (SIGSTOP)"},
		{traced.Process.Pid, fmt.Sprintf("is traced by %d", unix.Gettid())},
		{2, ""}, // a thread of the kernel, where there is one
		{run(build("pure", []string{"CGO_ENABLED=0"}, "")).Process.Pid, "is linked statically, so no library can be preloaded into it; if it is a Go program that uses cgo"},
		{run(build("other", []string{"CGO_ENABLED=0", "GOARCH=386"}, "")).Process.Pid, "is a program for EM_386, and this command one for amd64"},
		{own.Process.Pid, "has an allocator linked in, or module cmem"},
		{limited.Process.Pid, "has a limit of addresses (ulimit -v)"},
		{cat.Process.Pid, "is no Go program"},
	} {
		_, err := Open(c.pid)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("process %d: %v, want %q", c.pid, err, c.want)
		}
	}
}

// TestKilled kills commands at moments of all kinds. The program goes on, and has its slots and signals back.
func TestKilled(t *testing.T) {
	for i := range (*kills + Most - 1) / Most {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			k := kits[i%len(kits)]
			p := k.start(t, k.program, "storm")
			for range Most {
				testwait.Until(t, "the slots are back", func() bool { return p.helpers() == 0 })
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(80*time.Millisecond))))
				out, err := exec.CommandContext(ctx, "/proc/self/exe", "load", fmt.Sprint(p.Process.Pid), k.library).CombinedOutput()
				cancel()
				if err == nil { // it was not killed
					t.Fatal(string(out))
				}
			}
			testwait.Until(t, "the slots are back", func() bool { return p.helpers() == 0 })
			testwait.Until(t, "no thread blocks signals", func() bool {
				for _, mask := range p.lines("SigBlk") {
					if mask != "0000000000000000" {
						return false
					}
				}
				return true
			})
			p.end(t)
		})
	}
}

// TestEstimate compares the bytes in use with what the program knows to have allocated since, in 40 runs.
func TestEstimate(t *testing.T) {
	t.Parallel()
	const runs, leaked, sigmas = 40, 1_000_000, 4.5
	for i := range runs {
		k := kits[i%len(kits)]
		p := k.start(t, k.program, "leak")
		file := p.attach(t)
		least := map[bool]int64{false: 5_000_000}[k.isMusl] // musl does not say
		if before := file.Before(); before < least || before > least+least/2 {
			t.Errorf("%d bytes were in use before, want %d and a few", before, least)
		}
		fmt.Fprintln(p.input, "leak")
		if line, err := p.output.ReadString('\n'); line != "leaked\n" {
			t.Fatal(line, err)
		}
		c, err := file.Counts()
		testcall.Must(t, err)
		if wrong := math.Abs(float64(c.Live - leaked)); wrong > sigmas*float64(c.LiveError)+50_000 || c.LiveError > leaked/10 {
			t.Errorf("%d in use, give or take %d, want %d", c.Live, c.LiveError, leaked)
		}
		if c.Frees < 1000 {
			t.Errorf("%d frees, want those of 1,000 blocks from before", c.Frees)
		}
		_, err = file.Detach(time.Minute)
		testcall.Must(t, err)
		if freed := file.FreedBefore(c.Held); freed < least-least/10 || freed > least+least/10 {
			t.Errorf("%d bytes of those in use before were freed, want about %d", freed, least)
		}
		end(t, file)
		p.end(t)
	}
}

// TestForbidden looks at a process of root as another user.
func TestForbidden(t *testing.T) {
	t.Parallel()
	p := start(t, "calls")
	if os.Getuid() != 0 {
		t.Skip("only root can run a program as somebody else")
	}
	self := filepath.Join(folder, "self")
	text, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(self, text, 0o755)
	}
	testcall.Must(t, err)
	c := exec.Command(self, "open", fmt.Sprint(p.Process.Pid))
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	c.Dir = "/"
	out, err := c.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "run it with sudo, or sysctl kernel.yama.ptrace_scope=0 for programs of the same user, or in a container") {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := Open(p.Process.Pid); err != nil {
		t.Error(err)
	}
	p.end(t)
}

// TestLinked has a process whose C library is a link, as that of old systems is.
func TestLinked(t *testing.T) {
	t.Parallel()
	all, err := maps(start(t, "leak").Process.Pid)
	i := slices.IndexFunc(all, func(m procfs.Mapping) bool { return filepath.Base(m.Name) == "libc.so.6" })
	if err != nil || i < 0 {
		t.Fatal(i, err)
	}
	libc, err := os.ReadFile(all[i].Name)
	at := t.TempDir()
	if err = errors.Join(err, os.WriteFile(at+"/libc-2.31.so", libc, 0o700), os.Symlink("libc-2.31.so", at+"/libc.so.6")); err != nil {
		t.Fatal(err)
	}
	p := kits[0].start(t, "env", "LD_LIBRARY_PATH="+at, kits[0].program, "calls")
	end(t, p.attach(t))
	if os.Getuid() == 0 { // who may open what was removed
		testcall.Must(t, os.Remove(at+"/libc-2.31.so"))
		end(t, p.attach(t))
	}
	p.end(t)
}

// TestExec has a process become another program before the library is loaded: nothing is where it was.
func TestExec(t *testing.T) {
	t.Parallel()
	p := start(t, "calls")
	target, err := Open(p.Process.Pid)
	testcall.Must(t, err)
	fmt.Fprintln(p.input, "exec")
	if line, err := p.output.ReadString('\n'); line != "ready\n" {
		t.Fatal(line, err)
	}
	if _, err := target.Load(p.kit.library, 1<<10); err == nil || !strings.Contains(err.Error(), "has become another program (exec)") {
		t.Fatal(err)
	}
	end(t, p.attach(t))
	p.end(t)
}

// TestLate has the dynamic linker busy, by the constructor of a library that waits, until nobody wants the library any more. It leaves
// nothing, and is loaded as often as ever.
func TestLate(t *testing.T) {
	fifo, busy := filepath.Join(folder, "fifo"), filepath.Join(folder, "busy.so")
	err := errors.Join(unix.Mkfifo(fifo, 0o600), shares("cc", busy, fmt.Sprintf("#include <fcntl.h>\n#include <unistd.h>\n"+
		"__attribute__((constructor)) static void waits(void) { char c; read(open(%q, O_RDONLY), &c, 1); }\n", fifo)))
	testcall.Must(t, err)
	p := start(t, "calls")
	fmt.Fprintln(p.input, "load", busy)
	wait, err := os.OpenFile(fifo, os.O_WRONLY, 0) // returns when the other end has been opened
	testcall.Must(t, err)
	target, err := Open(p.Process.Pid)
	testcall.Must(t, err)
	defer func(was time.Duration) { loadPatience = was }(loadPatience)
	loadPatience = time.Second / 10
	if _, err := target.Load(p.kit.library, 1<<10); err == nil || !strings.Contains(err.Error(), "has not loaded the library: it is busy") {
		t.Fatal(err)
	}
	if files := p.files(); len(files) != 2 {
		t.Errorf("the dynamic linker is yet to open one of the files %q", files)
	}
	wait.Close()
	testwait.Until(t, "the library is unmapped", func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.Process.Pid))
		return err == nil && len(p.files()) == 0 && !strings.Contains(string(text), memoryName)
	})
	loadPatience = time.Minute
	for range Most {
		end(t, p.attach(t))
	}
	p.end(t)
}

// TestEnded has a process killed while one of its threads is stopped. It ends.
func TestEnded(t *testing.T) {
	p := start(t, "calls")
	_, all := sleepers(t, p)
	x, err := seize(all[0])
	testcall.Must(t, err)
	p.Process.Kill()
	if err := x.release(); err == nil {
		t.Fatal("the thread goes on")
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	testwait.Until(t, "the process ends", func() bool { return len(ended) > 0 })
}

// TestBeginsAgain has a thread that is about to begin its call again: it is not taken.
func TestBeginsAgain(t *testing.T) {
	p := start(t, "calls")
	target, all := sleepers(t, p)
	x, err := seize(all[0])
	testcall.Must(t, err)
	back := x.saved
	back.Rip -= syscallSize
	testcall.Must(t, unix.PtraceSetRegs(x.tid, &back))
	found, err := target.sleepers()
	if wrong := x.release(); err != nil || wrong != nil {
		t.Fatal(err, wrong)
	}
	for _, s := range found {
		if s.tid == x.tid {
			t.Errorf("a thread at %#x is taken", s.pc)
		}
	}
	p.end(t)
}

// sleepers returns threads of a process that may be taken, all by the thread of this test.
func sleepers(t *testing.T, p *process) (*Target, []*sleeper) {
	target, err := Open(p.Process.Pid)
	testcall.Must(t, err)
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	all, err := target.sleepers()
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	return target, all
}

// TestMoved has a thread that is not where it was seen: it goes on, and the next one is taken.
func TestMoved(t *testing.T) {
	p := start(t, "calls")
	target, all := sleepers(t, p)
	s := *all[0]
	s.pc++
	if _, err := seize(&s); !errors.Is(err, errMoved) {
		t.Fatal(err)
	}
	calls := 0
	if err := target.with(func(x *tracee) error {
		if calls++; calls == 1 {
			return errMoved
		}
		pid, err := x.syscall(unix.SYS_GETPID)
		if err == nil && int(pid) != p.Process.Pid {
			err = fmt.Errorf("getpid returns %d", pid)
		}
		return err
	}); err != nil || calls != 2 {
		t.Fatal(err, calls)
	}
	p.end(t)
}
