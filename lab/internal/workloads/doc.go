// Package workloads holds the programs with which the literature compares
// allocators, each written twice: in Go for package cheap, and in C for C's malloc
// and the libraries that replace it.
//
// They are written from the descriptions of the originals, and are not the
// originals. Both versions of a workload do the same: they draw from the same
// generator with the same seeds, so each goroutine or thread asks for blocks of the
// same sizes in the same order, and frees the same blocks. A block gets a mark in
// its first eight bytes and in its last byte, and the mark is read before the block
// is freed. The [Tally] of a run has what both versions must agree on, and a test
// compares the constants. A run has a
// fixed number of operations, and frees all of its blocks.
//
//   - larson: a server, by Larson and Krishnan (ISMM 1998). Each thread replaces
//     random blocks of its array, and leaves the array to a new thread.
//   - alloc-test: one thread fills and empties random places, most of them few, with
//     blocks of which twice the size is half as frequent (OLogN's alloc-test).
//   - rptest: as larson with sizes up to 16,000 bytes, of which small ones are more
//     frequent; other threads free a part, in batches of 25 (the benchmark of rpmalloc).
//   - sh6bench: runs of blocks of one size after the other fill an array; a third is
//     freed in order, a third in reverse order, a third later (MicroQuill's SmartHeap).
//   - glibc-simple: blocks of one size, allocated and freed in batches of 25 to 1,600
//     (benchtests of glibc).
//   - mixture: random places get blocks of Malloc, Calloc, AlignedMalloc and Realloc,
//     of 16 bytes to 256 KiB.
//   - xmalloc: threads that only allocate, and threads that only free (Lever and
//     Boreham, USENIX 2000).
//   - cache-scratch: each thread frees a small block that another thread has allocated,
//     then allocates, writes and frees such blocks. An allocator that gives out the
//     neighbour of another thread's block pays for it in the writes (Hoard, ASPLOS 2000).
//   - mstress: threads that keep some blocks, drop others, and swap some with each
//     other (mimalloc's test-stress).
//   - sawtooth: 16 MiB of blocks are allocated, all but 2 % are freed, and the sizes
//     change.
//   - large: four blocks of 5 to 25 MiB, one word of each page written.
package workloads
