package closeforgotten

import (
	"context"
	"errors"
	"unsafe"

	"github.com/cheapgo/cheap/own"
)

type Image struct{ h own.Handle[unsafe.Pointer] }

var images = own.NewPool(own.Options{
	Name:      "Image",
	OnCollect: func(own.Collected) { println("forgotten") },
})

var others = own.NewPool(own.Options{Name: "Other"})

func NewImage(p unsafe.Pointer) (*Image, error) { // want NewImage:"makes"
	m := new(Image)
	if err := m.h.Own(images, p, 1); err != nil {
		return nil, err
	}
	return m, nil
}

func NewOther(p unsafe.Pointer) (*Image, error) {
	m := new(Image)
	if err := m.h.Own(others, p, 1); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Image) Close() error { return m.h.Close() }
func (m *Image) Show()        {}
func (m *Image) end()         { m.Close() }

func never(p unsafe.Pointer) error {
	m, err := NewImage(p) // want `m is dropped without Close, in a pool with OnCollect`
	if err != nil {
		return err
	}
	m.Show()
	return nil
}

func path(p unsafe.Pointer, n int) error {
	m, err := NewImage(p) // want `m is not closed on the way to the return in line 55`
	if err != nil {
		return err
	}
	if n == 0 {
		return errors.New("zero") // 55
	}
	return m.Close()
}

func dropped(p unsafe.Pointer) {
	NewImage(p) // want `made and dropped`
}

func direct(p unsafe.Pointer) {
	var o own.Handle[unsafe.Pointer]
	o.Own(images, p, 1) // want `o is dropped without Close`
}

func closed(p unsafe.Pointer) error {
	m, err := NewImage(p)
	if err != nil {
		return err
	}
	defer m.Close()
	m.Show()
	return nil
}

func closedByMethod(p unsafe.Pointer) {
	m, err := NewImage(p)
	if err == nil {
		m.end()
	}
}

func closedByLiteral(p unsafe.Pointer) {
	m, err := NewImage(p)
	if err != nil {
		return
	}
	defer func() { m.h.Close() }()
	m.Show()
}

func handedOn(p unsafe.Pointer, to func(*Image), list []*Image) []*Image {
	m, err := NewImage(p)
	if err != nil {
		return nil
	}
	to(m)
	n, err := NewImage(p)
	if err != nil {
		return nil
	}
	return append(list, n)
}

func noOnCollect(p unsafe.Pointer) {
	m, err := NewOther(p)
	if err == nil {
		m.Show()
	}
}

func directClosed(p unsafe.Pointer) {
	var o own.Handle[unsafe.Pointer]
	if err := o.Own(images, p, 1); err != nil {
		return
	}
	o.Close()
}

func expectsError(p unsafe.Pointer) bool {
	if _, err := NewImage(p); err == nil {
		return false
	}
	return true
}

func loopOfConstant(p unsafe.Pointer) {
	m, err := NewImage(p)
	if err != nil {
		return
	}
	for range 2 {
		m.Close()
	}
}

func loopOfNumber(p unsafe.Pointer, n int) {
	m, err := NewImage(p) // want `m is not closed on the way to the return`
	if err != nil {
		return
	}
	for range n {
		m.Close()
	}
}

func loopOfList(p unsafe.Pointer) {
	m, err := NewImage(p)
	if err != nil {
		return
	}
	for range []string{"x", "y"} {
		m.Close()
	}
}

func endOfMemory(p unsafe.Pointer) error {
	m := new(Image)
	err := m.h.Own(images, p, 1)
	if errors.Is(err, errNoMemory) {
		return nil
	} else if err != nil {
		return err
	}
	return m.Close()
}

var errNoMemory = errors.New("no memory")

// Another variable has the owner.

func ofList(p unsafe.Pointer, list []*Image) {
	for _, m := range list {
		if err := m.h.Own(images, p, 1); err != nil {
			return
		}
	}
}

func ofArray(p unsafe.Pointer, list *[10]Image) {
	m := &list[3]
	if err := m.h.Own(images, p, 1); err != nil {
		return
	}
	m.Show()
}

func ofVariable(p unsafe.Pointer) error {
	var i Image
	m := &i
	if err := m.h.Own(images, p, 1); err != nil {
		return err
	}
	return i.Close()
}

// What is put into a list goes where the list goes.
func inList(p unsafe.Pointer, n int) {
	all := map[int]*Image{}
	for i := range n {
		m := new(Image)
		if err := m.h.Own(images, p, 1); err != nil {
			return
		}
		all[i] = m
	}
	for _, m := range all {
		m.Close()
	}
}

// A room belongs to a pool.

func NewImageIn(p unsafe.Pointer) (*Image, error) { // want NewImageIn:"makes"
	room, err := images.Reserve(context.Background(), 1)
	if err != nil {
		return nil, err
	}
	m := new(Image)
	if err := m.h.OwnWith(images, p, own.With{Room: room}); err != nil {
		return nil, err
	}
	return m, nil
}

func inRoom(p unsafe.Pointer) error {
	m, err := NewImageIn(p) // want `m is dropped without Close`
	if err != nil {
		return err
	}
	m.Show()
	room, err := images.Reserve(context.Background(), 1)
	if err != nil {
		return err
	}
	var o, closed own.Handle[unsafe.Pointer]
	if err := o.OwnWith(images, p, own.With{Room: room}); err != nil { // want `o is dropped without Close`
		return err
	}
	if err := closed.OwnWith(images, p, own.With{Room: room}); err != nil {
		return err
	}
	return closed.Close()
}

func inOtherRoom(p unsafe.Pointer) error {
	room, err := others.Reserve(context.Background(), 1)
	if err != nil {
		return err
	}
	m := new(Image)
	return m.h.OwnWith(others, p, own.With{Room: room})
}

// A room has to end in any pool.

func roomForgotten(p unsafe.Pointer) error {
	room, err := others.Reserve(context.Background(), 1) // want `room is a room in which nothing is owned, and which is not released, on the way to the return in line`
	if err != nil {
		return err
	}
	if p == nil {
		return errors.New("no memory")
	}
	m := new(Image)
	return m.h.OwnWith(others, p, own.With{Room: room})
}

func roomNever() error {
	room, err := others.Reserve(context.Background(), 1) // want `room is a room in which nothing is owned, and which is not released$`
	if err != nil {
		return err
	}
	_ = room
	return nil
}

func roomDropped() {
	others.Reserve(context.Background(), 1) // want `a room is reserved and dropped`
}

func roomDeferred(p unsafe.Pointer) error {
	room, err := others.Reserve(context.Background(), 1)
	if err != nil {
		return err
	}
	defer room.Close()
	if p == nil {
		return errors.New("no memory")
	}
	var o own.Handle[unsafe.Pointer]
	return o.OwnWith(others, p, own.With{Room: room})
}

func roomReleased(p unsafe.Pointer) error {
	room, err := others.Reserve(context.Background(), 1)
	if err != nil {
		return err
	}
	if p == nil {
		room.Close()
		return errors.New("no memory")
	}
	return fill(room, p)
}

func fill(room own.Room, p unsafe.Pointer) error {
	var o own.Handle[unsafe.Pointer]
	return o.OwnWith(others, p, own.With{Room: room})
}

func roomReturned() (own.Room, error) { return others.Reserve(context.Background(), 1) }

type keeper struct{ room own.Room }

func (k *keeper) roomKept() (err error) {
	k.room, err = others.Reserve(context.Background(), 1)
	return err
}

func roomExpectedError() bool {
	_, err := others.Reserve(context.Background(), 1)
	return err != nil
}

func roomInClosure(p unsafe.Pointer) error {
	room, err := others.Reserve(context.Background(), 1)
	if err != nil {
		return err
	}
	defer func() {
		room.Close()
	}()
	return nil
}
