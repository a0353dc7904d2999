// Package cheap is malloc and free for Go programs, in pure Go: memory outside the Go heap,
// which C code may use and keep. No call is a cgo call, and the garbage collector neither
// scans nor moves a block.
//
// It is for arguments of C calls, for memory that C keeps, and for large data that the
// collector should not see, such as caches. libc.Allocator is for memory that C passes to
// its own free. Package own frees objects that C made when Go has forgotten them, and
// package pace makes the collector count them.
//
//	heap, err := cheap.NewHeap(cheap.HeapOptions{Limit: 64 << 20})
//	...
//	p := cheap.New[point](heap) // zeroed; nil if there is no memory
//	name := cheap.CString(heap, "origin") // for C, a char *
//	...
//	cheap.Delete(heap, p)
//	heap.Free(name)
//	err = heap.Destroy() // an error if a block was not freed
//
// # What holds what
//
//	operating system
//	  │  regions of 64 MiB; mappings for blocks of 16 MiB and more
//	Heap                        any goroutine; one cache for each P
//	  ├── block                 Heap.Malloc … Heap.Free
//	  ├── Local                 a cache for one goroutine
//	  │     └── block           belongs to the Heap
//	  ├── FixedBlock            chunks of the Heap, cut into blocks of one size
//	  │     └── block
//	  └── Arena                 chunks of the Heap, blocks that end together
//	        └── block
//
// A [FixedBlock] and an [Arena] take their chunks from any [Allocator]: a Heap, another
// FixedBlock, or C's malloc (package libc). A [Fallback] joins two allocators.
//
// # Which allocator when
//
//	blocks of any size, freed by any goroutine     Heap; Malloc and Free are the default Heap
//	a hot loop in one goroutine                    Local, from Heap.NewLocal
//	very many blocks of one size                   FixedBlock
//	mostly small blocks, sometimes a large one     Fallback: a FixedBlock, then a Heap
//	blocks that end together                       Arena
//	the arguments of one C call                    GetArena, and Arena.Put after the call
//	memory that C frees, or that C allocated       libc.Allocator (needs cgo)
//
// Over each of them there are typed helpers, [New], [Delete], [MakeSlice], [Append] and
// [FreeSlice], and strings for C, [CString], [CStrings], [CBytes], [GoString] and
// [GoBytes].
//
// # The life of a block
//
// Malloc returns a block: at least as large as asked for, aligned to 16 bytes, with
// undefined contents. It stays at its address until the program passes this address to
// Free, or to Realloc. No garbage collection frees it. Any goroutine, and any thread of C,
// may use it. Free finds everything else from the address, and panics with a
// [MisuseError] if the address is not the start of a live block. Destroy of the
// allocator returns a [LiveError] as long as blocks are live.
//
// If there is no memory, or a limit is reached, Malloc returns nil; TryMalloc returns the
// reason. If the arguments are wrong, a function panics with a MisuseError.
//
// # Words for an end
//
// Each word has one meaning, in all packages.
//
//   - Close ends what a program holds: an owner, a pool, a Memory, a Group, a Room, an
//     Account. It always ends it, and reports what was left. It does not wait; where
//     something may go on meanwhile, CloseWait does.
//   - Free ends one block. It returns no error, because a wrong Free panics.
//   - Destroy ends an allocator. Unlike Close it refuses, and changes nothing, while blocks of a
//     Heap or a FixedBlock are live; DestroyAll ends them, too.
//   - Reset ends what an object has, and not the object. FreeAll of an Arena gives
//     its memory back besides; Release of an Arena is a Reset to a [Mark].
//   - Put gives an object to the pool that GetArena or calls.Get has taken it from: another
//     goroutine may get it next.
//   - Stop ends what a Start has begun, and Start may begin it again. End of a calls.Repeat is
//     where a loop in a recording ends: nothing is released.
//
// # What is not promised
//
//   - A pointer that is freed after its block was allocated again frees the new block. No
//     check can detect that.
//   - A write to a freed block is detected only if the block has at most 64 KiB and its first
//     16 bytes change. It is detected when the block is taken off its list, or when its span
//     is given back. The free blocks linked behind it are lost. A write of bytes that were
//     read from the same block, when it was free before, is not detected. CHEAP_CHECK in the
//     environment detects more: see [CheckLevel].
//   - Heap.Free of a large block of an [Arena] is not detected before the arena frees the
//     block, too. Heap.Free of the first block of a batch of an own.Memory frees the memory
//     of the whole batch.
//   - An unsafe.Pointer with a number from 1 to 4,095 is not valid in Go. Free panics for it
//     as for any other number, but Go's runtime ends the program if it has to copy a
//     stack on which there is such a pointer, and Free may need more stack.
//   - Of two calls of Free with one block at the same time, one panics if the block has
//     more than 64 KiB. With a smaller one both may return. The heap panics later, if it
//     finds the block in two lists; free blocks may be lost, and counts of Stats be wrong.
//     No memory in use goes to another heap, with two exceptions: the second call is
//     interrupted, between its check of the block and its write, until the memory belongs
//     to another heap; or two calls of Malloc return the block at the same time, and it is
//     used after one of its two owners has freed it.
//   - A call of Free at the same time as Destroy of its heap may go undetected. It does not
//     harm another heap.
//   - Memory of this package must not hold the only reference to Go memory, because the
//     garbage collector does not look there.
//   - A pointer into this memory keeps nothing alive: neither an [Arena] from [GetArena],
//     nor an owner of package own.
//   - Blocks are not freed automatically. A Heap that becomes unreachable without Destroy
//     is never released. A Local that becomes unreachable returns its cached blocks; the
//     blocks in use stay.
//   - No function may be called from a signal handler, nor in a child process between fork
//     and exec.
//   - valgrind does not find pointers in this memory, nor does LeakSanitizer without package
//     asan.
//
// # Build tags and environment
//
// The tags cheap_portable and cheap_gomem, the environment variables, and the
// systems that are supported are listed in docs/reference/limits.md.
package cheap
