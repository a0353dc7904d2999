package main

/*
#cgo LDFLAGS: -lrocksdb
#include <rocksdb/c.h>
#include <stdint.h>

typedef struct { const char *key, *value; size_t key_size, value_size; } Row;

// scan_round goes on to the next row, but for the first one, and reads it.
static unsigned char scan_round(uintptr_t iterator, unsigned char first, Row *row) {
	rocksdb_iterator_t *it = (rocksdb_iterator_t *)iterator;
	if (!first) rocksdb_iter_next(it);
	if (!rocksdb_iter_valid(it)) return 0;
	row->key = rocksdb_iter_key(it, &row->key_size);
	row->value = rocksdb_iter_value(it, &row->value_size);
	return 1;
}
*/
import "C"

import (
	"reflect"

	"github.com/linxGnu/grocksdb"
)

// scanRounds is scan with one function of C for the calls of a round. The iterator of C is a field of that of
// the binding.
func scanRounds(it *grocksdb.Iterator, f *found) {
	c := C.uintptr_t(reflect.ValueOf(it).Elem().FieldByName("c").Pointer())
	it.SeekToFirst()
	var row C.Row
	for first := C.uchar(1); C.scan_round(c, first, &row) != 0; first = 0 {
		f.rows++
		f.keys += int(row.key_size)
		f.values += int(row.value_size)
	}
}
