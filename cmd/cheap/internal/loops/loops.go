// Package loops does what the benchmarks of cgoalloc v1.2.1 and of cgoparam
// v1.1.0 do: on these packages, on the drop-in for the first, on C's malloc
// through cgo, and on heaps and arenas. All loops that stand beside each other
// ask for the same blocks.
//
// The benchmarks of Multilayer... allocate blocks of three sizes, most of them
// of 4 bytes.
package loops

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
