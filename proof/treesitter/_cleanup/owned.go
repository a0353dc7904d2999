package tree_sitter

/*
#include <stdlib.h>
#include <tree_sitter/api.h>

void cheap_parser_delete(TSParser *p) { ts_parser_print_dot_graphs(p, -1); ts_parser_delete(p); }
void cheap_cursor_delete(TSTreeCursor *c) { ts_tree_cursor_delete(c); free(c); }
*/
import "C"

import (
	"runtime"
	"unsafe"
)

// A pool destroys what the collector has found. The sizes are for own, and not used.
type pool func(p unsafe.Pointer)

var (
	trees     pool = func(p unsafe.Pointer) { C.ts_tree_delete((*C.TSTree)(p)) }
	cursors   pool = func(p unsafe.Pointer) { C.cheap_cursor_delete((*C.TSTreeCursor)(p)) }
	parsers   pool = func(p unsafe.Pointer) { C.cheap_parser_delete((*C.TSParser)(p)) }
	queries   pool = func(p unsafe.Pointer) { C.ts_query_delete((*C.TSQuery)(p)) }
	running   pool = func(p unsafe.Pointer) { C.ts_query_cursor_delete((*C.TSQueryCursor)(p)) }
	iterators pool = func(p unsafe.Pointer) { C.ts_lookahead_iterator_delete((*C.TSLookaheadIterator)(p)) }
)

type owner struct{ *object }

type object struct {
	cleanup runtime.Cleanup
	destroy func(unsafe.Pointer)
	p       unsafe.Pointer
}

func owned(destroy pool, p unsafe.Pointer, size int) owner {
	o := &object{destroy: destroy, p: p}
	o.cleanup = runtime.AddCleanup(o, destroy, p)
	return owner{o}
}

func (o owner) Close() { o.cleanup.Stop(); o.destroy(o.p) }

// A cCursor is in C memory, as its stack is.
type cCursor struct{ _inner C.TSTreeCursor }

func ownCursor(c C.TSTreeCursor, tree *Tree) *TreeCursor {
	p := C.calloc(1, C.sizeof_TSTreeCursor)
	(*cCursor)(p)._inner = c
	return &TreeCursor{(*cCursor)(p), owned(cursors, p, 0), tree}
}
