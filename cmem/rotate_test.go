//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/cheapgo/cheap/cmem/internal/cwork"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
	"github.com/google/pprof/profile"
)

// rotated returns the names in a folder, and reads the profiles.
func rotated(t *testing.T, dir string) (names []string, all []*profile.Profile) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	testcall.Must(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
		if !strings.HasSuffix(e.Name(), ".pb.gz") {
			continue
		}
		all = append(all, parse(t, filepath.Join(dir, e.Name())))
	}
	return names, all
}

//go:noinline
func rotateFirst(n int) unsafe.Pointer { return cwork.Alloc(0, n) }

//go:noinline
func rotateSecond(n int) unsafe.Pointer { return cwork.Alloc(0, n) }

// TestRotate has almost two hours pass: three profiles are kept, and two of them say what has changed.
func TestRotate(t *testing.T) {
	withRate(t, 1)
	dir := filepath.Join(t.TempDir(), "made", "by it")
	other := filepath.Join(dir, "a file of another program")
	p := rotateFirst(1 << 20)
	defer cwork.Free(p)
	synctest.Test(t, func(t *testing.T) {
		stop, err := Rotate(RotateOptions{Dir: dir, Every: 30 * time.Minute, Keep: 3, Failed: func(err error) { t.Error(err) }})
		testcall.Must(t, err)
		testcall.Must(t, os.WriteFile(other, nil, 0o600))
		time.Sleep(75 * time.Minute)
		synctest.Wait()
		names, _ := rotated(t, dir)
		want := []string{"a file of another program"}
		for _, at := range []string{"000000", "003000", "010000"} {
			want = append(want, fmt.Sprintf("cmem-20000101T%s.000000Z-%d.pb.gz", at, os.Getpid()))
		}
		if !slices.Equal(names, want) {
			t.Errorf("%q, want %q", names, want)
		}
		runtime.LockOSThread() // this one, which is not that of withRate, reads the rate again
		defer runtime.UnlockOSThread()
		cwork.Pairs(600, 1000)
		q := rotateSecond(2 << 20)
		defer cwork.Free(q)
		time.Sleep(30 * time.Minute)
		testcall.Want(t, stop())
		if err := stop(); err != nil {
			t.Errorf("a second time: %v", err)
		}
		synctest.Wait()
		names, all := rotated(t, dir)
		if len(names) != 4 || len(all) != 3 || !strings.Contains(names[3], "T014500.000000Z") {
			t.Errorf("%q", names)
		}
		cmd := exec.Command("go", "tool", "pprof", "-top", "-cum", "-unit=B", "-base="+filepath.Join(dir, names[1]), filepath.Join(dir, names[3]))
		cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+dir, "CGO_ENABLED=0") // CC may be that of another processor
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
		if text := string(out); !strings.Contains(text, "2097152B") || !strings.Contains(text, "rotateSecond") || strings.Contains(text, "rotateFirst") {
			t.Errorf("what has changed: %s", text)
		}
	})
}

// TestRotateKilled kills processes that write profiles: all that is there can be read, and the next process removes what is
// not complete.
func TestRotateKilled(t *testing.T) {
	t.Parallel()
	testchild.Main(t, func() {
		r := rotation{RotateOptions: RotateOptions{Dir: os.Getenv("CMEM_ROTATE"), Keep: 5}}
		for {
			if err := r.write(); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			fmt.Println("written")
		}
	})
	dir := t.TempDir()
	for i := range 5 {
		cmd := testchild.Command(t)
		cmd.Env = append(cmd.Environ(), "CMEM_ROTATE="+dir)
		out, err := cmd.StdoutPipe()
		testcall.Must(t, err)
		testcall.Must(t, cmd.Start())
		lines := bufio.NewScanner(out)
		for range 3 + 2*i {
			if !lines.Scan() || lines.Text() != "written" {
				t.Fatalf("the child has written %q", lines.Text())
			}
		}
		_ = cmd.Process.Kill()
		for lines.Scan() {
		}
		_ = cmd.Wait() // it was killed
		names, all := rotated(t, dir)
		if len(all) < 3 || len(all) > 5 || len(names) > len(all)+i+1 {
			t.Errorf("%q", names)
		}
		for _, p := range all {
			if err := p.CheckValid(); err != nil || len(p.SampleType) != 4 {
				t.Errorf("%v: %v", err, p)
			}
		}
	}
	part := filepath.Join(dir, "cmem-20000101T000000.000000Z-1.pb.gz.part")
	testcall.Must(t, os.WriteFile(part, []byte("the beginning"), 0o600))
	stop, err := Rotate(RotateOptions{Dir: dir, Keep: 2})
	testcall.Must(t, err)
	testcall.Want(t, stop())
	if names, all := rotated(t, dir); len(names) != 2 || len(all) != 2 {
		t.Errorf("%q", names)
	}
}

// TestRotateFails has no folder at first, and then one that is replaced by a file for a while.
func TestRotateFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "profiles")
	testcall.Must(t, os.WriteFile(dir, nil, 0o600))
	if _, err := Rotate(RotateOptions{Dir: dir}); err == nil {
		t.Error("a file is no folder")
	}
	testcall.Must(t, os.Remove(dir))
	synctest.Test(t, func(t *testing.T) {
		failed := 0
		stop, err := Rotate(RotateOptions{Dir: dir, Failed: func(error) { failed++ }})
		testcall.Must(t, err)
		testcall.Must(t, os.Rename(dir, dir+" of before"))
		testcall.Must(t, os.WriteFile(dir, nil, 0o600))
		time.Sleep(21 * time.Minute)
		synctest.Wait()
		if failed != 2 {
			t.Errorf("%d profiles have failed", failed)
		}
		testcall.Must(t, os.Remove(dir))
		testcall.Want(t, stop())
	})
	if names, _ := rotated(t, dir); len(names) != 1 {
		t.Errorf("%q", names)
	}
}

// TestRotateFailedStops has Failed call stop.
func TestRotateFailedStops(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "profiles")
	synctest.Test(t, func(t *testing.T) {
		var stop func() error
		failed := 0
		stop, err := Rotate(RotateOptions{Dir: dir, Failed: func(error) { failed++; _ = stop() }})
		testcall.Must(t, err)
		testcall.Must(t, errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)))
		time.Sleep(time.Hour)
		synctest.Wait()
		if failed != 1 {
			t.Errorf("Failed was called %d times", failed)
		}
	})
}

// TestRotateClockBack has profiles of the future, as after a clock was set back: they go before those of now.
func TestRotateClockBack(t *testing.T) {
	dir := t.TempDir()
	future := "cmem-20990101T000000.000000Z-1.pb.gz"
	for _, name := range []string{future, "cmem-20990102T000000.000000Z-1.pb.gz"} {
		testcall.Must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	r := rotation{RotateOptions: RotateOptions{Dir: dir, Keep: 2}}
	for i := range 3 {
		testcall.Must(t, r.write())
		names := r.names(false)
		now := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name >= future })
		if len(names) != 2 || len(now) != min(i+1, 2) {
			t.Errorf("%d profiles: %q", i+1, names)
		}
	}
}
