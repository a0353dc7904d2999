// Package procfs parses what Linux says of a process in the files of /proc.
package procfs

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"sync"
)

// Bytes returns the bytes that the line of a name says in kB, in the text of status, smaps_rollup and
// such files. It allocates nothing.
func Bytes(text []byte, name string) (n int64, ok bool) {
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			text = nil
		}
		if n, ok := kilobytes(line, name); ok {
			return n, true
		}
	}
	return 0, false
}

// kilobytes reads a line such as "Rss:    1234 kB".
func kilobytes(line []byte, name string) (bytesOf int64, ok bool) {
	if len(line) <= len(name) || line[len(name)] != ':' || string(line[:len(name)]) != name {
		return 0, false
	}
	number, isKB := bytes.CutSuffix(bytes.TrimSpace(line[len(name)+1:]), []byte(" kB"))
	n, err := strconv.ParseInt(string(number), 10, 64)
	return n << 10, isKB && err == nil
}

// Resident returns the resident bytes that the text of statm says, and how many of them are pages of
// files: 0 if it does not say. page is the size of a page in bytes. It allocates nothing.
//
// The kernel keeps these counts for each processor, and adds them up now and then, so they may be wrong
// by some hundred KiB. smaps_rollup, which Linux has since 4.14, walks the page tables.
func Resident(statm []byte, page int64) (all, file int64) {
	_, rest, _ := bytes.Cut(statm, []byte(" ")) // size, resident, shared, …
	resident, rest, _ := bytes.Cut(rest, []byte(" "))
	shared, _, _ := bytes.Cut(rest, []byte(" "))
	all, err := strconv.ParseInt(string(resident), 10, 64)
	if err != nil {
		return 0, 0
	}
	file, err = strconv.ParseInt(string(shared), 10, 64)
	if err != nil {
		return 0, 0
	}
	return all * page, file * page
}

// statm is opened once: the open file stays that of this process.
var statm = sync.OnceValue(func() *File {
	if runtime.GOOS != "linux" {
		return nil // Wine shows /proc as well
	}
	return Open("/proc/self/statm")
})

// Self is Resident of this process: 0 where that is not known.
func Self() (all, file int64) {
	statm().Read(func(text []byte) int64 {
		all, file = Resident(text, int64(os.Getpagesize()))
		return 0
	})
	return all, file
}

// Anonymous returns how many resident bytes of this process are no pages of files.
func Anonymous() int64 {
	all, file := Self()
	return all - file
}

// Count returns the number without a unit behind a name, such as "Threads:	7" of status, or 0. It
// allocates nothing.
func Count(text []byte, name string) (n int64) {
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line, text = text[:i], text[i+1:]
		} else {
			text = nil
		}
		if len(line) > len(name) && line[len(name)] == ':' && string(line[:len(name)]) == name {
			n, _ = strconv.ParseInt(string(bytes.TrimSpace(line[len(name)+1:])), 10, 64)
			return n
		}
	}
	return 0
}
