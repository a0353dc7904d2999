package cmem

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"time"
)

// RotateOptions are those of [Rotate].
type RotateOptions struct {
	// Dir is the folder of the profiles, which is made if it does not exist. At any time one process has it, by one
	// call of Rotate.
	Dir string

	Every time.Duration // from one profile to the next: a second at least; 0 is 10 minutes
	Keep  int           // how many profiles are kept, those of earlier processes among them; 0 is 144, a day of these

	// Failed, if not nil, is called with the error of each profile that could not be written, by the goroutine that writes
	// them. The next one is tried in its time. It may call stop, and may still run when stop returns.
	Failed func(error)
}

// Rotate writes the profile of [WriteProfile] into a folder, now and each time that an interval has passed, and removes
// the oldest ones. The error is that of the first profile. stop writes a last one, and returns the error of that; any
// goroutine may call it, and more than once.
//
// A profile is complete, or not there, also after the process was killed or the machine has stopped. The names begin
// with cmem-, the time in UTC and the number of the process, so their order is that of time.
//
//	go tool pprof -base cmem-20261126T120000.000000Z-71.pb.gz cmem-20261126T180000.000000Z-71.pb.gz
//
// shows what has changed between two profiles of one process: blocks that were freed count below 0.
func Rotate(o RotateOptions) (stop func() error, err error) {
	if s := Off(); s != "" {
		return nil, fmt.Errorf("cmem: Rotate: %s", s)
	}
	if o.Every < 0 || o.Keep < 0 {
		panic("cmem: Rotate: an interval or a number of profiles below 0")
	}
	o.Every, o.Keep = max(cmp.Or(o.Every, 10*time.Minute), time.Second), cmp.Or(o.Keep, 144)
	r := rotation{RotateOptions: o}
	r.removeParts()
	if err := r.write(); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go r.run(done)
	return sync.OnceValue(func() error { // not by waiting for run: Failed may call it
		close(done)
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.write()
	}), nil
}

// A rotation writes profiles, one at a time.
type rotation struct {
	RotateOptions
	mu sync.Mutex // held during write
}

// writeUnless is write, but after stop.
func (r *rotation) writeUnless(done <-chan struct{}) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-done:
		return nil
	default:
		return r.write()
	}
}

func (r *rotation) run(done <-chan struct{}) {
	ticker := time.NewTicker(r.Every)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			if err := r.writeUnless(done); err != nil && r.Failed != nil {
				r.Failed(err)
			}
		}
	}
}

const (
	rotatedTime = "20060102T150405.000000Z"
	partSuffix  = ".part" // of a profile that is being written
)

var rotatedName = regexp.MustCompile(`^cmem-\d{8}T\d{6}\.\d{6}Z-\d+\.pb\.gz(\.part)?$`)

// names returns the names of the profiles, or of their parts, the oldest first.
func (r *rotation) names(parts bool) (all []string) {
	entries, _ := os.ReadDir(r.Dir) // it may not be there yet
	for _, e := range entries {
		if m := rotatedName.FindStringSubmatch(e.Name()); m != nil && (m[1] != "") == parts {
			all = append(all, e.Name())
		}
	}
	slices.Sort(all)
	return all
}

// removeParts removes what processes have left that were killed.
func (r *rotation) removeParts() {
	for _, name := range r.names(true) {
		_ = os.Remove(filepath.Join(r.Dir, name)) // it does no harm
	}
}

// write writes a profile, for which it makes room.
func (r *rotation) write() (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cmem: Rotate: %w", err)
		}
	}()
	p, err := Profile()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return err
	}
	base := fmt.Sprintf("cmem-%s-%d.pb.gz", time.Now().UTC().Format(rotatedTime), os.Getpid())
	all := r.names(false)
	i, _ := slices.BinarySearch(all, base)
	all = slices.Concat(all[i:], all[:i]) // those of a clock that was set back meanwhile go first
	for ; len(all) >= r.Keep; all = all[1:] {
		if err := os.Remove(filepath.Join(r.Dir, all[0])); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	name := filepath.Join(r.Dir, base)
	part := name + partSuffix
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	// It has its name when all of it is on the disk, and the name is on the disk when this function returns.
	if err := errors.Join(p.Write(f), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	if err := os.Rename(part, name); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return syncDir(r.Dir)
}

// syncDir has the names in a folder written to the disk, where its file system does that.
func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, dir.Close())
}
