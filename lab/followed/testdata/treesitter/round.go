package main

/*
// The functions are in the package of the binding, which the linker joins with this one.
#cgo linux LDFLAGS: -Wl,--unresolved-symbols=ignore-all
#include <stdbool.h>
#include <stdint.h>

// From tree_sitter/api.h, which the binding has in a folder of its own.
typedef struct { uint32_t context[4]; const void *id, *tree; } TSNode;
typedef struct { const void *tree, *id; uint32_t context[3]; } TSTreeCursor;
TSNode ts_tree_cursor_current_node(const TSTreeCursor *);
bool ts_tree_cursor_goto_first_child(TSTreeCursor *);
uint16_t ts_node_symbol(TSNode);
uint32_t ts_node_start_byte(TSNode);
uint32_t ts_node_end_byte(TSNode);

typedef struct { uint32_t bytes; uint16_t kind; bool child; } Round;

static Round count_round(void *cursor) {
	TSNode node = ts_tree_cursor_current_node(cursor);
	Round r = {
		.bytes = ts_node_end_byte(node) - ts_node_start_byte(node),
		.kind = ts_node_symbol(node),
		.child = ts_tree_cursor_goto_first_child(cursor),
	};
	return r;
}
*/
import "C"

import (
	"unsafe"

	sitter "github.com/tree-sitter/go-tree-sitter"
)

// countRounds is count with one function of C for the calls of a round. A TreeCursor has nothing but
// the cursor of C.
func countRounds(cursor *sitter.TreeCursor, f *found) {
	for {
		round := C.count_round(unsafe.Pointer(cursor)) // its only field is the struct of C
		f.kinds[uint16(round.kind)]++
		f.bytes += uint(round.bytes)
		if round.child {
			continue
		}
		for !cursor.GotoNextSibling() {
			if !cursor.GotoParent() {
				return
			}
		}
	}
}
