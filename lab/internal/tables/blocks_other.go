//go:build !unix

package tables

// mappedBlocks returns nothing: there is no mmap.
func mappedBlocks() []blockWay { return nil }
