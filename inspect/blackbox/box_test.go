package blackbox

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
)

// A container is the sources of a test.
type container struct {
	used, limit atomic.Int64
}

func (c *container) charge(time.Time) (used, limit int64) { return c.used.Load(), c.limit.Load() }

func (c *container) record(now time.Time) *Record {
	r := aRecord(now)
	r.Container.Charged, r.Container.Limit = c.used.Load(), c.limit.Load()
	return r
}

// inBubble runs a box with the sources of a test, and the clock of synctest.
func inBubble(t *testing.T, o Options, f func(b *Box, c *container)) {
	t.Helper()
	o.File = filepath.Join(t.TempDir(), "box")
	synctest.Test(t, func(t *testing.T) {
		c := new(container)
		c.limit.Store(100 * mib)
		b, err := newBox(o, c)
		testcall.Must(t, err)
		b.tasks.Go(b.run)
		f(b, c)
		testcall.Want(t, b.Stop())
		if r, err := ReadReport(o.File); err != nil || r.State != Stopped || r.Damaged > 0 {
			t.Errorf("%v, %+v", err, r)
		}
	})
}

// TestNotice has the charge rise to near the limit, fall, and rise again.
func TestNotice(t *testing.T) {
	var mu sync.Mutex
	var told []*Record
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(told)
	}
	var release chan bool
	o := Options{Every: time.Second, Near: 0.9, OnNear: func(r *Record) {
		mu.Lock()
		told = append(told, r)
		first := len(told) == 1
		mu.Unlock()
		if first {
			<-release // a function that takes its time
		}
	}}
	inBubble(t, o, func(b *Box, c *container) {
		release = make(chan bool) // of the bubble
		step := func(used int64, d time.Duration, want int) {
			t.Helper()
			c.used.Store(used * mib)
			time.Sleep(d)
			synctest.Wait()
			if n := count(); n != want {
				t.Errorf("%d notices at %d MiB, want %d", n, used, want)
			}
		}
		step(89, 10*time.Minute, 0)
		step(91, time.Second, 1)
		if r, err := ReadReport(b.file.f.Name()); err != nil || r.Last.Container.Charged != 91*mib {
			t.Errorf("the box does not have what the notice says: %v, %+v", err, r.Last)
		}
		step(99, 10*time.Minute, 1) // it has not fallen
		step(70, 10*time.Minute, 1)
		step(95, time.Second, 1) // the first call is not over
		close(release)
		step(70, 10*time.Minute, 1)
		step(95, time.Second, 2)
		step(70, time.Second, 2)
		step(95, time.Second, 2) // within a minute
		step(95, time.Minute, 3)
		c.limit.Store(0)
		step(95, 10*time.Minute, 3)
	})
	if r := told[0]; r.Container.Charged != 91*mib || !strings.Contains(r.Line(), "91.0 MiB of 100 MiB charged") {
		t.Errorf("the first notice is %s", r.Line())
	}
}

// TestNever has no notice.
func TestNever(t *testing.T) {
	o := Options{Every: time.Second, Near: never, OnNear: func(*Record) { t.Error("a notice") }}
	inBubble(t, o, func(b *Box, c *container) {
		c.used.Store(100 * mib)
		time.Sleep(time.Minute)
	})
}

// TestErr has a file that cannot be written for a while.
func TestErr(t *testing.T) {
	inBubble(t, Options{Every: time.Second, Near: 0.9}, func(b *Box, c *container) {
		time.Sleep(10 * time.Second)
		good, err := b.file.f, error(nil)
		b.mu.Lock()
		b.file.f, err = os.Open(good.Name()) // not for writing
		bad := b.file.f
		b.mu.Unlock()
		testcall.Must(t, err)
		time.Sleep(10 * time.Second)
		if err := b.Err(); err == nil {
			t.Error("no error")
		}
		if err := b.Record(); err == nil {
			t.Error("Record: no error")
		}
		b.mu.Lock()
		b.file.f = good
		b.mu.Unlock()
		bad.Close()
		time.Sleep(10 * time.Second)
		testcall.Want(t, b.Err())
	})
}

// TestStart starts twice, with options that are wrong, and again after Stop.
func TestStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "box")
	b, err := Start(Options{File: path})
	testcall.Must(t, err)
	if _, err := Start(Options{File: path + "2"}); !errors.Is(err, ErrStarted) {
		t.Error(err)
	}
	if _, err := os.Stat(path + "2"); err == nil {
		t.Error("the second Start has made a file")
	}
	testcall.Want(t, errors.Join(b.Record(), b.Err(), b.Stop(), b.Stop(), b.Record()))
	r, err := ReadReport(path)
	if err != nil || r.State != Stopped {
		t.Errorf("%v, %+v", err, r)
	}
	if _, err := Start(Options{File: filepath.Join(path, "box")}); err == nil {
		t.Error("a file is a folder")
	}
	if b, err = Start(Options{}); err != nil { // without a file
		t.Fatal(err)
	}
	if err := errors.Join(b.Record(), b.Stop()); err != nil || b.Previous() != nil {
		t.Error(err)
	}
	for _, o := range []Options{{Every: -1}, {Every: time.Millisecond}, {Near: 90}, {Near: math.NaN()}} {
		if _, is := testcall.Catch(func() { _, _ = Start(o) }).(*cheap.MisuseError); !is {
			t.Errorf("%+v is taken", o)
		}
	}
}

// TestHammer has goroutines that record and stop.
func TestHammer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "box")
	b, err := Start(Options{File: path, Every: leastEvery})
	testcall.Must(t, err)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				testcall.Want(t, b.Record())
				if r, err := ReadReport(path); err != nil || r.Last == nil {
					t.Errorf("%v, %+v", err, r)
				}
			}
			if i == 0 {
				testcall.Want(t, b.Stop())
			}
		})
	}
	wg.Wait()
	if r, err := ReadReport(path); err != nil || r.State != Stopped {
		t.Errorf("%v, %+v", err, r)
	}
}

// TestKill kills a process again and again, each time while it writes as fast as it can. The next one
// finds what it has written last.
func TestKill(t *testing.T) {
	const variable = "CHEAP_TEST_BOX"
	path := os.Getenv(variable)
	if !testchild.Is() {
		path = filepath.Join(t.TempDir(), "box")
	}
	testchild.Main(t, func() {
		f, before, err := create(path, aProcess)
		if err != nil {
			os.Stdout.WriteString(err.Error())
			os.Exit(1)
		}
		if before != nil && (before.Last == nil || before.Last.Verdict != aRecord(time.Now()).Verdict) {
			os.Stdout.WriteString("the box before is wrong")
			os.Exit(1)
		}
		for i := 0; ; i++ {
			if err := f.write(aRecord(time.Now())); err != nil {
				os.Stdout.WriteString(err.Error())
				os.Exit(1)
			}
			if i == 100 {
				os.Stdout.WriteString("ready")
			}
		}
	})
	for range 10 {
		cmd := testchild.Command(t)
		cmd.Env = append(cmd.Env, variable+"="+path)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		testcall.Must(t, err)
		said := make([]byte, 5)
		if _, err := out.Read(said); err != nil || !bytes.Equal(said, []byte("ready")) {
			t.Fatalf("%s, %v", said, err)
		}
		testcall.Must(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
		r, err := ReadReport(path)
		if err != nil || r.Last == nil || r.Last.Number < 100 || r.Damaged > 1 || r.State != Ended && r.State != Unknown {
			t.Fatalf("%v, %+v", err, r)
		}
	}
}
