// Package own has the names of the package that the analyzers know.
package own

import (
	"context"
	"unsafe"
)

type Collected struct{ Count int }

type Options struct {
	Name      string
	Release   func(state any, resources []uintptr) error
	State     any
	OnCollect func(Collected)
	Parent    Owner
	Construct func(resources []uintptr) (int, error)
	Run       Run
}

type Pool struct{ o Options }

func NewPool(o Options) *Pool { return &Pool{o} }

func (p *Pool) Reserve(ctx context.Context, size int) (Room, error) { return Room{p}, nil }

type Run struct{ queue *Queue }

func Workers(n int) Run { return Run{} }

type Queue struct{ n int }

func (q *Queue) Run() Run           { return Run{q} }
func (q *Queue) Drain(most int) int { return 0 }

type Room struct{ pool *Pool }

func (r Room) Close() error { return nil }

type Owner struct{ p unsafe.Pointer }

type With struct {
	Size   int
	Parent Owner
	State  any
	Room   Room
}

type Handle[P any] struct{ p P }

func (h *Handle[P]) Own(pool *Pool, resource P, size int) error { return nil }
func (h *Handle[P]) Close() error                               { return nil }
func (h *Handle[P]) CloseWait(ctx context.Context) error        { return nil }

func (h *Handle[P]) Owner() Owner                                 { return Owner{} }
func (h *Handle[P]) OwnWith(pool *Pool, resource P, w With) error { return nil }
func (h *Handle[P]) Make(pool *Pool) error                        { return nil }

func (h *Handle[P]) Pointer() P                   { return h.p }
func (h *Handle[P]) Use(f func(P))                { f(h.p) }
func (h *Handle[P]) TryUse(f func(P) error) error { return f(h.p) }

type Number[N any] struct{ n N }

func (n *Number[N]) Close() error { return nil }

type Memory struct{}

type Mem[T any] struct{ p *T }

func NewMem[T any](m *Memory) (*Mem[T], error) { return nil, nil }
func (m *Mem[T]) Use(f func(*T))               { f(m.p) }

type Bytes struct{ b []byte }

func (b *Bytes) Use(f func([]byte)) { f(b.b) }
