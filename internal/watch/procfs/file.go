package procfs

import (
	"os"
	"sync"
)

// A File is a small file of the kernel that is read again and again. A nil File is one that cannot be
// read. Its methods may be called from any goroutine.
type File struct {
	file *os.File
	mu   sync.Mutex
	text [8192]byte // under mu
}

// Open returns nil if the file cannot be read. A file of /proc/self stays that of this process.
func Open(name string) *File {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	return &File{file: f} // closed by the runtime, when it is unreachable
}

// Read calls f with the text of the file, of which there are 8 KiB at most, and which is empty if the
// file cannot be read. f must not keep it. Read allocates nothing.
func (k *File) Read(f func(text []byte) int64) int64 {
	if k == nil {
		return 0
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	n, _ := k.file.ReadAt(k.text[:], 0) // the error is io.EOF, or nothing was read
	return f(k.text[:n])
}
