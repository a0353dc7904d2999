package blackbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// A file is the black box of this process, while it runs. One goroutine at a time uses it.
//
// Records are written by pwrite, not by stores to a mapping. Both leave the bytes in the page cache of
// the kernel, which outlives the process. A store to a mapping ends the process by SIGBUS if somebody
// has cut the file short or the disk is full, and stops a processor of the Go runtime, and so each
// collection, while the kernel writes the page to a slow disk. pwrite returns an error, or is a system
// call that the runtime knows.
type file struct {
	f      *os.File
	head   []byte
	number int64  // of the last record
	buffer []byte // of one slot, used again
}

// create opens the box of a path, for this process alone, and writes a new head. If the process that
// wrote it before has ended without Stop, its report is returned, and the file is copied to the path
// with .previous behind it.
func create(path string, p Process) (*file, *Report, error) {
	f, err := openLocked(path)
	if err != nil {
		return nil, nil, err
	}
	before, err := keepPrevious(f, path)
	var head []byte
	if err == nil {
		head, err = encodeHead(p)
	}
	if err == nil {
		err = initialize(f, head)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return &file{f: f, head: head, buffer: make([]byte, 0, slotSize)}, before, nil
}

// openLocked opens a file for this process alone. The lock ends with the process.
func openLocked(path string) (*os.File, error) {
	for range 10 {
		f, err := openFile(path)
		if err != nil {
			return nil, err
		}
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("cheap: blackbox: %s is no regular file", path)
		}
		if err == nil {
			err = lock(f)
		}
		if errors.Is(err, errLocked) {
			err = busy(f, path)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		// Another process may have replaced the file since it was opened.
		if now, err := os.Lstat(path); err == nil && os.SameFile(info, now) {
			return f, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("cheap: blackbox: %s is replaced again and again", path)
}

// busy returns the error for a file that another process writes.
func busy(f *os.File, path string) error {
	who := "another process"
	if r, err := readFrom(f); err == nil {
		who = fmt.Sprintf("process %d (%s)", r.Process.PID, r.Process.Program)
	}
	return fmt.Errorf("cheap: blackbox: %w: %s writes %s; give each process a path of its own", ErrBusy, who, path)
}

// keepPrevious copies the box of a process that has ended without Stop. It returns an error if the file
// is something else than a box, which is not overwritten.
func keepPrevious(f *os.File, path string) (*Report, error) {
	b, err := readAll(f)
	if err != nil || len(b) == 0 {
		return nil, err
	}
	r, err := decode(b)
	switch {
	case errors.Is(err, ErrNoBox):
		return nil, fmt.Errorf("%w, and is not overwritten: %s", err, path)
	case err == nil && (r.Last == nil || r.Last.Stopped):
		return nil, nil
	}
	// In a folder in which no file can be made, the old box is lost: the new one is worth more.
	_ = replace(path+".previous", b)
	if err != nil {
		return nil, nil // of another version, or damaged: the copy has what there is
	}
	r.State, r.KilledSince = Ended, killedSince(r.Last)
	return r, nil
}

// replace makes a file with these bytes, for the owner alone, in one step.
func replace(path string, b []byte) error {
	t, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = t.Write(b)
	if err = errors.Join(err, t.Close()); err == nil {
		err = os.Rename(t.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(t.Name()))
	}
	return nil
}

// initialize writes the head and empty slots: from then on the file has its blocks on the disk.
func initialize(f *os.File, head []byte) error {
	if err := f.Chmod(0o600); err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil { // so that no head is ever before the records of another process
		return err
	}
	return writeEmpty(f, head)
}

func writeEmpty(f *os.File, head []byte) error {
	b := make([]byte, fileSize)
	copy(b, head)
	_, err := f.WriteAt(b, 0)
	return err
}

// write writes the next record. If it fails, the record before is still in the file.
func (f *file) write(r *Record) error {
	r.Number = f.number + 1
	b, err := appendSlot(f.buffer[:0], r)
	if err != nil {
		return err
	}
	if info, err := f.f.Stat(); err == nil && info.Size() != fileSize {
		if err := writeEmpty(f.f, f.head); err != nil { // somebody has cut it short
			return err
		}
	}
	if _, err := f.f.WriteAt(b, offset(r.Number)); err != nil {
		return err // the next record goes to the same slot
	}
	f.number, f.buffer = r.Number, b
	return nil
}

func (f *file) close() error { return f.f.Close() }

// ReadReport reads the black box in a file. A process may be writing it. The error wraps [ErrNoBox] if the
// file is something else.
func ReadReport(path string) (*Report, error) {
	// Opening a named pipe waits for a writer.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, fmt.Errorf("%w: %s is no regular file", ErrNoBox, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := readFrom(f)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, path)
	}
	switch {
	case r.Last != nil && r.Last.Stopped:
		r.State = Stopped
	default:
		r.State = stateOf(f)
	}
	r.KilledSince = killedSince(r.Last)
	return r, nil
}

// readFrom reads a box that may be written at the same time: then a slot may not be whole, and the
// next look finds that it is.
func readFrom(f *os.File) (*Report, error) {
	for tries := 1; ; tries++ {
		b, err := readAll(f)
		if err != nil {
			return nil, err
		}
		r, err := decode(b)
		if tries == 3 || err == nil && r.Damaged == 0 {
			return r, err
		}
		time.Sleep(time.Millisecond)
	}
}

// readAll reads a file from its begin, but no more than a box has.
func readAll(f *os.File) ([]byte, error) {
	return io.ReadAll(io.NewSectionReader(f, 0, fileSize))
}
