//go:build linux && cgo && (amd64 || arm64)

package otelmemory

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"runtime"
	"testing"
	"unsafe"
)

// A note is a USDT probe as the file of a program describes it.
type note struct {
	provider, name, arguments string
	pc, base, semaphore       uint64
}

func align(n uint32) int { return int(n+3) &^ 3 }

// readNotes reads all probes of the test binary.
func readNotes(t *testing.T) (notes []note, f *elf.File) {
	t.Helper()
	f, err := elf.Open(program(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	section := f.Section(".note.stapsdt")
	if section == nil {
		t.Fatal("the file has no section .note.stapsdt")
	}
	if section.Type != elf.SHT_NOTE || section.Flags&elf.SHF_ALLOC != 0 {
		t.Errorf("the section is of type %v with flags %v", section.Type, section.Flags)
	}
	data, err := section.Data()
	if err != nil {
		t.Fatal(err)
	}
	order := binary.LittleEndian
	for len(data) >= 12 {
		owner, size, kind := order.Uint32(data), order.Uint32(data[4:]), order.Uint32(data[8:])
		data = data[12:]
		if string(data[:owner]) != "stapsdt\x00" || kind != 3 {
			t.Fatalf("a note of %q, type %d", data[:owner], kind)
		}
		text := data[align(owner):][:size]
		data = data[align(owner)+align(size):]
		words := bytes.SplitN(text[24:], []byte{0}, 4)
		notes = append(notes, note{
			pc: order.Uint64(text), base: order.Uint64(text[8:]), semaphore: order.Uint64(text[16:]),
			provider: string(words[0]), name: string(words[1]), arguments: string(words[2]),
		})
		if len(words[3]) != 0 {
			t.Errorf("%q is behind the note", words[3])
		}
	}
	if len(data) != 0 {
		t.Errorf("%d bytes are behind the notes", len(data))
	}
	return notes, f
}

func program(t *testing.T) string {
	t.Helper()
	name, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// at returns n bytes of the file that are loaded at an address.
func at(t *testing.T, f *elf.File, address, n uint64, flags elf.ProgFlag) ([]byte, uint64) {
	t.Helper()
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && address >= p.Vaddr && address+n <= p.Vaddr+p.Filesz && p.Flags&flags == flags {
			b := make([]byte, n)
			if _, err := p.ReadAt(b, int64(address-p.Vaddr)); err != nil {
				t.Fatal(err)
			}
			return b, p.Off + address - p.Vaddr
		}
	}
	t.Fatalf("%#x is in no part of the file that is loaded with %v", address, flags)
	return nil, 0
}

// TestNotes reads the probes as a tracer does: from the file of the program.
func TestNotes(t *testing.T) {
	notes, f := readNotes(t)
	nop := map[string][]byte{"amd64": {0x90}, "arm64": {0x1f, 0x20, 0x03, 0xd5}}[runtime.GOARCH]
	arguments := map[string][2]string{
		"amd64": {"8@%rdi 8@%rsi 8@%rdx", "8@%rdi"},
		"arm64": {"8@x0 8@x1 8@x2", "8@x0"},
	}[runtime.GOARCH]
	moved := map[uint64]bool{} // by how much the program was moved when it was loaded
	for i, name := range []string{"alloc", "free"} {
		var found []note
		for _, n := range notes {
			if n.provider == "otel_memory" && n.name == name {
				found = append(found, n)
			}
		}
		if len(found) != 1 {
			t.Fatalf("%d probes %s, want 1: %+v", len(found), name, notes)
		}
		n := found[0]
		if n.arguments != arguments[i] {
			t.Errorf("the arguments of %s are %q, want %q", name, n.arguments, arguments[i])
		}
		if code, _ := at(t, f, n.pc, uint64(len(nop)), elf.PF_X); !bytes.Equal(code, nop) {
			t.Errorf("the instruction of %s is % x, want % x", name, code, nop)
		}
		if b, _ := at(t, f, n.semaphore, 4, elf.PF_W); !bytes.Equal(b, make([]byte, 4)) || n.semaphore%4 != 0 {
			t.Errorf("the semaphore of %s, at %#x, is % x", name, n.semaphore, b)
		}
		if base := f.Section(".stapsdt.base"); base == nil || base.Addr != n.base {
			t.Errorf("the base of %s is %#x, the section %+v", name, n.base, base)
		}
		// The semaphore of the note is the one that is read here.
		address := uintptr(unsafe.Pointer([]*uint32{allocSemaphore, freeSemaphore}[i]))
		moved[uint64(address)-n.semaphore] = true
	}
	if len(notes) < 2 || len(moved) != 1 {
		t.Errorf("%d notes; the semaphores were moved by %v", len(notes), moved)
	}
}
