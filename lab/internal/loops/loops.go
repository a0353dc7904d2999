// Package loops has the loops of the benchmarks of cgoalloc v1.2.1 and of cgoparam
// v1.1.0: on these packages, on the drop-in for cgoalloc, on C's malloc through
// cgo, and on heaps and arenas. Loops that are compared allocate the same blocks.
//
// The benchmarks of Multilayer... allocate blocks of three sizes, most of them
// of 4 bytes.
package loops

//go:generate go run github.com/cheapgo/cheap/internal/replay/expand -o dropin.go original.go Original=Dropin original=dropin github.com/CannibalVox=github.com/cheapgo/cheap/x

// temporarySize is the size of the block of step i of MultilayerTemporaryData.
func temporarySize(i int) int {
	switch {
	case i%100 == 0:
		return 512
	case i%10 == 0:
		return 128
	}
	return 4
}

// grownSize is the size of block i of MultilayerGrowShrink.
func grownSize(i int) int {
	switch {
	case i%1000 == 0:
		return 512
	case i%100 == 0:
		return 128
	}
	return 4
}
