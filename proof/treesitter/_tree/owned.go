package tree_sitter

/*
#include <stdlib.h>
#include <tree_sitter/api.h>

void cheap_parser_delete(TSParser *p) { ts_parser_print_dot_graphs(p, -1); ts_parser_delete(p); }
void cheap_cursor_delete(TSTreeCursor *c) { ts_tree_cursor_delete(c); free(c); }
*/
import "C"

import (
	"unsafe"

	"github.com/cheapgo/cheap/libc"
	"github.com/cheapgo/cheap/own"
)

// The sizes were measured with malloc. Trees and queries are told theirs when they are made.
var (
	trees     = pool("Tree", 0, C.ts_tree_delete)
	cursors   = pool("TreeCursor", 300, C.cheap_cursor_delete)
	parsers   = pool("Parser", 16<<10, C.cheap_parser_delete)
	queries   = pool("Query", 0, C.ts_query_delete)
	running   = pool("QueryCursor", 3<<10, C.ts_query_cursor_delete)
	iterators = pool("LookaheadIterator", 64, C.ts_lookahead_iterator_delete)
)

// pool does not promise libc.NoCallback: an allocator of the program may be in Go.
func pool(name string, size int, destroy unsafe.Pointer) *own.Pool {
	return own.NewPool(own.Options{Name: name, Size: size, CHeap: true, Release: libc.Destructor(destroy)})
}

type owner = own.Handle[unsafe.Pointer]

func owned(pool *own.Pool, p unsafe.Pointer, size int) (o owner) {
	if err := o.Own(pool, p, size); err != nil {
		panic(err) // not possible: the pool is never destroyed
	}
	return o
}

// A cCursor is in C memory, as its stack is, so that both can be freed when the TreeCursor is gone.
type cCursor struct{ _inner C.TSTreeCursor }

func ownCursor(c C.TSTreeCursor, tree *Tree) *TreeCursor {
	p := C.calloc(1, C.sizeof_TSTreeCursor)
	(*cCursor)(p)._inner = c
	return &TreeCursor{(*cCursor)(p), owned(cursors, p, 0), tree}
}
