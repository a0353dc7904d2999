package blackbox

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testchild"
)

var update = flag.Bool("update", false, "write testdata/version1.box")

// TestUpdate writes the file of TestOtherVersions.
func TestUpdate(t *testing.T) {
	if !*update {
		return
	}
	testcall.Must(t, os.WriteFile("testdata/version1.box", boxOf(t, 3), 0o666))
}

// mustCreate makes a box.
func mustCreate(t *testing.T, path string) (*file, *Report) {
	t.Helper()
	f, before, err := create(path, aProcess)
	testcall.Must(t, err)
	return f, before
}

// TestOverwrite starts again with the file of a process that has ended in some way. The box of one without
// Stop is kept, and stays when a process ends in order.
func TestOverwrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "box")
	kept := path + ".previous"
	f, before := mustCreate(t, path)
	if before != nil {
		t.Errorf("a new file has a report: %+v", before)
	}
	if err := f.close(); err != nil { // before the first record
		t.Fatal(err)
	}
	f, before = mustCreate(t, path)
	if _, err := os.Stat(kept); before != nil || err == nil {
		t.Errorf("a box without a record is kept: %+v", before)
	}
	write := func(r *Record) {
		t.Helper()
		testcall.Must(t, f.write(r))
	}
	write(aRecord(time.Now()))
	write(aRecord(time.Now()))
	f.close()
	f, before = mustCreate(t, path)
	if before == nil || before.State != Ended || before.Last.Number != 2 {
		t.Fatalf("the report of the process before is %+v", before)
	}
	if r, err := ReadReport(kept); err != nil || r.Last.Number != 2 || r.State != Ended && r.State != Unknown {
		t.Errorf("the kept file: %v, %+v", err, r)
	}
	if r, err := ReadReport(path); err != nil || r.Last != nil {
		t.Errorf("the new file: %v, %+v", err, r)
	}
	last := aRecord(time.Now())
	last.Stopped = true
	write(last)
	f.close()
	if r, err := ReadReport(path); err != nil || r.State != Stopped {
		t.Errorf("after Stop: %v, %+v", err, r)
	}
	f, before = mustCreate(t, path)
	f.close()
	if before != nil {
		t.Errorf("a process that has ended in order has a report: %+v", before)
	}
	if r, err := ReadReport(kept); err != nil || r.Last.Number != 2 {
		t.Errorf("the kept file: %v, %+v", err, r)
	}
	for _, name := range []string{path, kept} {
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != 0o600 && runtime.GOOS != "windows" {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 2 {
		t.Errorf("the folder has %v (%v)", all, err)
	}
}

// TestKeptAsIs starts with the file of another version, with a damaged one, and where the old box cannot
// be kept.
func TestKeptAsIs(t *testing.T) {
	for _, row := range []struct {
		name   string
		damage func(b []byte)
		folder bool // is in the place of the old box
	}{
		{name: "version", damage: func(b []byte) { b[8]++ }},
		{name: "head", damage: func(b []byte) { b[prefix]++ }},
		{name: "folder", folder: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			path, b := filepath.Join(t.TempDir(), "box"), boxOf(t, 3)
			if row.damage != nil {
				row.damage(b)
			}
			err := os.WriteFile(path, b, 0o600)
			if row.folder {
				err = errors.Join(err, os.Mkdir(path+".previous", 0o700))
			}
			testcall.Must(t, err)
			f, before := mustCreate(t, path)
			testcall.Must(t, errors.Join(f.write(aRecord(time.Now())), f.close()))
			if (before != nil) != row.folder {
				t.Errorf("the report of the process before is %+v", before)
			}
			if r, err := ReadReport(path); err != nil || r.Last.Number != 1 {
				t.Errorf("%v, %+v", err, r)
			}
			if kept, err := os.ReadFile(path + ".previous"); !row.folder && (err != nil || !bytes.Equal(kept, b)) {
				t.Errorf("the old box is not kept: %v", err)
			}
			if all, err := os.ReadDir(filepath.Dir(path)); err != nil || len(all) != 2 {
				t.Errorf("the folder has %v (%v)", all, err)
			}
		})
	}
}

// TestNotABox has paths at which there is something else. Nothing of it is changed.
func TestNotABox(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // it has neither permissions nor links like these
	}
	dir := t.TempDir()
	text := bytes.Repeat([]byte("a file of somebody else\n"), 1000)
	other := filepath.Join(dir, "other")
	testcall.Must(t, os.WriteFile(other, text, 0o644))
	link := filepath.Join(dir, "link")
	testcall.Must(t, os.Symlink(other, link))
	for _, row := range []struct{ path, want string }{
		{other, "is no black box, and is not overwritten: "},
		{link, "is a link"},
		{dir, "is a directory"},
		{filepath.Join(dir, "none", "box"), "no such file"},
		{"/dev/null", "is no regular file"},
		{other + "/box", "not a directory"},
	} {
		f, _, err := create(row.path, aProcess)
		if err == nil {
			f.close()
		}
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.path, err, row.want)
		}
	}
	if now, err := os.ReadFile(other); err != nil || !bytes.Equal(now, text) {
		t.Errorf("the file is changed: %v", err)
	}
	if _, err := ReadReport(other); !errors.Is(err, ErrNoBox) {
		t.Error(err)
	}
}

// TestPermissions takes an old box that others may read.
func TestPermissions(t *testing.T) {
	if runtime.GOOS == "windows" {
		return
	}
	path := filepath.Join(t.TempDir(), "box")
	testcall.Must(t, os.WriteFile(path, boxOf(t, 1), 0o666))
	f, _ := mustCreate(t, path)
	defer f.close()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// TestUnderTheWriter cuts the file of a running box short again and again, and removes it. That ends no
// process, and the next record is whole.
func TestUnderTheWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "box")
	f, _ := mustCreate(t, path)
	defer f.close()
	for i := range 20 {
		if i%5 == 3 {
			testcall.Must(t, os.Truncate(path, int64(i)*700))
		}
		testcall.Must(t, f.write(aRecord(time.Now())))
		if r, err := ReadReport(path); err != nil || r.Last.Number != int64(i+1) || r.Process.PID != aProcess.PID || r.Damaged > 0 {
			t.Fatalf("record %d: %v, %+v", i+1, err, r)
		}
	}
	if err := os.Remove(path); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	testcall.Want(t, f.write(aRecord(time.Now())))
}

// TestOneProcess has a second process start with the path of the first.
func TestOneProcess(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // it has no lock
	}
	const variable = "CHEAP_TEST_BOX"
	path := os.Getenv(variable)
	if path == "" {
		path = filepath.Join(t.TempDir(), "box")
	}
	var f *file
	if !testchild.Is() {
		f, _ = mustCreate(t, path)
		defer f.close()
		testcall.Must(t, f.write(aRecord(time.Now())))
	}
	out, status := testchild.Run(t, func() {
		_, _, err := create(path, aProcess)
		os.Stdout.WriteString(errorText(err))
		if !errors.Is(err, ErrBusy) {
			os.Exit(1)
		}
		if r, err := ReadReport(path); err != nil || r.State != Running || r.Last.Number != 1 {
			os.Exit(2)
		}
	}, variable+"="+path)
	if status != 0 || !strings.Contains(out, "process 42 (server) writes") {
		t.Errorf("%d: %s", status, out)
	}
	testcall.Want(t, f.write(aRecord(time.Now())))
	if r, err := ReadReport(path); err != nil || r.Last.Number != 2 {
		t.Errorf("%v, %+v", err, r)
	}
}

func errorText(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

// TestFull has a disk on which nothing can be written.
func TestFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "box")
	f, _ := mustCreate(t, path)
	testcall.Must(t, f.write(aRecord(time.Now())))
	good := f.f
	var err error
	if f.f, err = os.Open(path); err != nil { // not for writing
		t.Fatal(err)
	}
	for range 3 {
		if err := f.write(aRecord(time.Now())); err == nil {
			t.Fatal("no error")
		}
	}
	f.f.Close()
	f.f = good
	if r, err := ReadReport(path); err != nil || r.Last.Number != 1 || r.Damaged != 0 {
		t.Errorf("%v, %+v", err, r)
	}
	testcall.Want(t, f.write(aRecord(time.Now())))
	if r, err := ReadReport(path); err != nil || r.Last.Number != 2 {
		t.Errorf("%v, %+v", err, r)
	}
	f.close()
}
