package sizeclass

import "testing"

func TestIndexExhaustively(t *testing.T) {
	for i := range Classes {
		c := &Classes[i]
		for off := range uint32(SpanSize) {
			got := Index(off, c.Inverse, c.Shift)
			if off%c.Size == 0 {
				if got != off/c.Size {
					t.Fatalf("class %d (%d bytes): Index(%d) = %d, want %d", i, c.Size, off, got, off/c.Size)
				}
			} else if got < SpanSize {
				t.Fatalf("class %d (%d bytes): Index(%d) = %d, but it is no start of a block", i, c.Size, off, got)
			}
		}
	}
}

func TestOf(t *testing.T) {
	for size := 0; size <= MaxSize; size++ {
		c := Of(size)
		if int(Classes[c].Size) < size {
			t.Fatalf("Of(%d) is the class of %d bytes", size, Classes[c].Size)
		}
		if c > 0 && size > 0 && int(Classes[c-1].Size) >= size {
			t.Fatalf("Of(%d) is the class of %d bytes, but %d would do", size, Classes[c].Size, Classes[c-1].Size)
		}
		if waste := int(Classes[c].Size) - size; size > 128 && 8*waste > size {
			t.Fatalf("%d bytes are rounded up to %d: more than 12.5 %%", size, Classes[c].Size)
		}
	}
}

func TestTable(t *testing.T) {
	for i := range Classes {
		c := &Classes[i]
		if c.Size%Quantum != 0 || c.Blocks < 1 || c.Blocks*c.Size > SpanSize || (c.Blocks+1)*c.Size <= SpanSize {
			t.Errorf("class %d: %+v", i, *c)
		}
	}
	if CacheLeast > 1<<19 {
		t.Errorf("what is set aside for each class is %d bytes, which leaves little of the 1 MiB that a cache may hold", CacheLeast)
	}
}
