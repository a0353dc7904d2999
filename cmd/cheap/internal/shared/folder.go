//go:build linux && (amd64 || arm64)

package shared

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
)

// A run that is killed removes nothing of what it has made for itself, so a later run does. While
// the process of a run lives, it holds a lock (flock) of the file in memory, and one of a file in the
// folder. The kernel ends a lock with its process. So a number of a process that has come again, or
// that is of another container, misleads nobody, and runs at the same time leave each other alone.
// The program of a run that was killed may still run: it keeps what it has mapped, and the samples for
// which it needs more are lost.
//
// Before a file is locked, another run may take it for one that was left. So who has the lock looks
// whether the file is still there: the one who has made it makes another one, and the one who has
// found it leaves alone what came in its place.

// lockName is the file in a folder that is locked. A folder without it is not of this command.
const lockName = "cheap-record.lock"

// memory is where files in memory are.
const memory = "/dev/shm"

var (
	folderName = regexp.MustCompile(`^cheap-record-\d+$`)
	memoryName = regexp.MustCompile(`^cheap-record-\d+-\d+\.heap$`)
)

// A Folder is one for temporary files.
type Folder struct {
	Path string
	lock *os.File
}

// MakeFolder removes what runs of this user have left that were killed, and makes a folder. left is called for each file
// that is removed, with its path, while nobody else has its lock.
func MakeFolder(left func(path string)) (*Folder, error) {
	removeLeft(os.TempDir(), memory, left)
	return FolderIn("")
}

// FolderIn makes a folder in another one; "" is that for temporary files.
func FolderIn(where string) (*Folder, error) {
	for {
		path, err := os.MkdirTemp(where, "cheap-record-")
		if err != nil {
			return nil, err
		}
		f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			os.Remove(path)
			return nil, err
		}
		if lock(f) {
			return &Folder{path, f}, nil
		}
		f.Close()
	}
}

// Remove removes the folder, and then ends the lock.
func (f *Folder) Remove() error { return errors.Join(os.RemoveAll(f.Path), f.lock.Close()) }

// lock takes the lock of a file that this process has made, and reports whether the file is still
// there. On a file system without locks it takes none, and nobody removes what was left.
func lock(f *os.File) bool {
	flock(f, syscall.LOCK_EX)
	return isAt(f, f.Name())
}

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			return err
		}
	}
}

// isAt reports whether a path is still that of a file.
func isAt(f *os.File, path string) bool {
	here, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(here, there)
}

// removeLeft removes folders in temporary, and files there and in memory, whose processes have ended. What
// cannot be removed stays: it is not what this run is for.
func removeLeft(temporary, memory string, left func(path string)) {
	for _, where := range []string{temporary, memory} {
		folders, _ := os.ReadDir(where)
		for _, entry := range folders {
			if path := filepath.Join(where, entry.Name()); entry.IsDir() && folderName.MatchString(entry.Name()) {
				ifLeft(filepath.Join(path, lockName), func() {
					removeFiles(path, left)
					os.RemoveAll(path)
				})
			}
		}
	}
	removeFiles(memory, left)
}

// removeFiles removes such files from a folder.
func removeFiles(folder string, left func(path string)) {
	files, _ := os.ReadDir(folder)
	for _, entry := range files {
		if path := filepath.Join(folder, entry.Name()); memoryName.MatchString(entry.Name()) {
			ifLeft(path, func() {
				left(path)
				os.Remove(path)
			})
		}
	}
}

// ifLeft calls remove, with the lock of a file, if the file is of this user and nobody else has the
// lock.
func ifLeft(path string, remove func()) {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		return
	}
	if flock(f, syscall.LOCK_EX|syscall.LOCK_NB) == nil && isAt(f, path) {
		remove()
	}
}

// makeFile makes a file in a folder, and locks it. Its name has the number of this process.
func makeFile(folder string) (*os.File, error) {
	for {
		f, err := os.CreateTemp(folder, fmt.Sprintf("cheap-record-%d-*.heap", os.Getpid()))
		if err != nil || lock(f) {
			return f, err
		}
		f.Close()
	}
}
