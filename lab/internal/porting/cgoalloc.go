package porting

// #include "library.h"
import "C"

import "github.com/cheapgo/cheap/x/cgoalloc"

// A Pool makes pairs of blocks that it keeps. One goroutine at a time uses it.
type Pool struct{ a cgoalloc.Allocator }

// NewPool takes chunks of 4096 bytes, for blocks of 16.
func NewPool() (*Pool, error) {
	a, err := cgoalloc.CreateFixedBlockAllocator(&cgoalloc.DefaultAllocator{}, 4096, C.sizeof_pair, 8)
	return &Pool{a}, err
}

// SumOf has C add up two numbers.
func (p *Pool) SumOf(a, b int64) int64 {
	block := p.a.Malloc(C.sizeof_pair)
	defer p.a.Free(block)
	c := (*C.pair)(block)
	c.a, c.b = C.int64_t(a), C.int64_t(b)
	return int64(C.sum_pair(c))
}

// Close gives the chunks back.
func (p *Pool) Close() error { return p.a.Destroy() }
