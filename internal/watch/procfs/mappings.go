package procfs

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"sync"
)

// A Mapping is a range of addresses of a process.
type Mapping struct {
	Start, End        uint64
	Read, Write, Exec bool   // what may be done there
	Offset            uint64 // of Start in the file, in bytes
	Inode             uint64 // of the file, or 0
	Name              string // such as "/lib/libc.so.6 (deleted)", "[heap]", "[anon:cheap: heap]"; often ""

	// Of smaps alone: the bytes that are in memory, those of them that are no pages of a file, or
	// were changed since, the anonymous ones that are in huge pages, and the bytes that were swapped out.
	Resident, Anonymous, Huge, Swap int64
}

// Mappings calls f with the mappings that from lists, in the order of addresses, until f returns
// false. from is in the form of /proc/PID/maps or /proc/PID/smaps.
//
// The kernel makes the list while it is read, a microsecond or so for each mapping of maps and 4 for
// one of smaps, and a process may have 65,530. So no more is read than f asks for, and a buffer.
func Mappings(from io.Reader, f func(Mapping) (more bool)) error {
	var m Mapping
	found := false
	lines := buffers.Get().(*bufio.Reader)
	defer buffers.Put(lines)
	defer lines.Reset(nil)
	for lines.Reset(from); ; {
		line, err := lines.ReadSlice('\n')
		if err == nil || errors.Is(err, io.EOF) {
			if next, ok := parse(line); ok {
				if found && !f(m) {
					return nil
				}
				m, found = next, true
			} else if n, ok := kilobytes(line, "Rss"); ok {
				m.Resident = n
			} else if n, ok := kilobytes(line, "Anonymous"); ok {
				m.Anonymous = n
			} else if n, ok := kilobytes(line, "AnonHugePages"); ok {
				m.Huge = n
			} else if n, ok := kilobytes(line, "Swap"); ok {
				m.Swap = n
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			if found {
				f(m)
			}
			return nil
		case err != nil:
			return err
		}
	}
}

// buffers has buffers: a reading of the own process is to allocate little.
var buffers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 16<<10) }}

// parse reads a line such as "7f00-7f10 rw-p 00000000 00:00 0   [heap]".
func parse(line []byte) (m Mapping, ok bool) {
	at, rest, _ := bytes.Cut(line, []byte(" "))
	from, to, isRange := bytes.Cut(at, []byte("-"))
	if !isRange || len(rest) < 4 {
		return m, false
	}
	number := func(text []byte, base int) uint64 {
		n, err := strconv.ParseUint(string(text), base, 64)
		ok = ok && err == nil
		return n
	}
	ok = true
	m.Start, m.End = number(from, 16), number(to, 16)
	mode, rest, _ := bytes.Cut(rest, []byte(" "))
	offset, rest, _ := bytes.Cut(rest, []byte(" "))
	_, rest, _ = bytes.Cut(rest, []byte(" ")) // the device
	inode, name, _ := bytes.Cut(rest, []byte(" "))
	if len(mode) < 3 {
		return m, false
	}
	m.Read, m.Write, m.Exec = mode[0] == 'r', mode[1] == 'w', mode[2] == 'x'
	m.Offset, m.Inode = number(offset, 16), number(bytes.TrimSpace(inode), 10)
	m.Name = string(bytes.TrimSpace(name))
	return m, ok
}
