// Package fill has what the bytes of checked memory hold, and what a damage of them is: of the blocks
// of a heap, an arena and a FixedBlock.
package fill

// A Page is a page of bytes that are equal.
type Page [4 << 10]byte

// The bytes of a border, of a block that is handed out, of a free one, and of memory that the system
// has taken.
//
// If a program passes a block to C's free, glibc reads its size in the border before it. The bits of
// 0xB6 mean a mapping, which the address contradicts, so glibc ends the program. Those of 0xB5 led to
// an arena that the start of the region was taken for.
var Border, New, Freed, Zero = pageOf(0xB6), pageOf(0xA5), pageOf(0xDF), pageOf(0)

func pageOf(v byte) *Page {
	f := new(Page)
	for i := range f {
		f[i] = v
	}
	return f
}

// Write fills b.
func (f *Page) Write(b []byte) {
	for len(b) > 0 {
		b = b[copy(b, f[:]):]
	}
}

// Changed returns the range of bytes of b that Write has not left: from is the first of them,
// and to is behind the last.
func (f *Page) Changed(b []byte) (from, to int) {
	for rest := b; ; rest = rest[len(f):] {
		if len(rest) <= len(f) {
			if string(rest) == string(f[:len(rest)]) {
				return 0, 0
			}
			break
		}
		if string(rest[:len(f)]) != string(f[:]) {
			break
		}
	}
	for b[from] == f[0] {
		from++
	}
	for to = len(b); b[to-1] == f[0]; to-- {
	}
	return from, to
}
