// Package beside returns what has to be freed together with an error.
package beside

/*
#include <stdlib.h>
typedef struct tree tree;
tree *tree_parse(const char *text);
int tree_check(tree *t);
int tree_is_null(tree *t);
void tree_delete(tree *t);
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

var errBroken = errors.New("broken")

// A Tree has to be closed.
type Tree struct{ t *C.tree }

// Close frees the tree.
func (t *Tree) Close() { C.tree_delete(t.t) } // want Close:`releases` Close:`params`

func (t *Tree) check() error {
	if C.tree_check(t.t) != 0 {
		return errBroken
	}
	return nil
}

// Parse returns the tree of a text with mistakes as well.
func Parse(text *C.char) (*Tree, error) { // want Parse:`params\[0\]` Parse:`results\[0\] beside an error\[0\]`
	t := &Tree{C.tree_parse(text)}
	if C.tree_check(t.t) != 0 {
		return t, fmt.Errorf("mistakes")
	}
	return t, nil
}

// Checked is like Parse, with an error of another function.
func Checked(text *C.char) (*Tree, error) { // want Checked:`params\[0\]` Checked:`results\[0\] beside an error\[0\]`
	t := &Tree{C.tree_parse(text)}
	if err := t.check(); err != nil {
		return t, err
	}
	return t, nil
}

// Strict closes the tree before it returns an error.
func Strict(text *C.char) (*Tree, error) { // want Strict:`params\[0\]` Strict:`results\[0\]$`
	t := &Tree{C.tree_parse(text)}
	if err := t.check(); err != nil {
		t.Close()
		return t, err
	}
	return t, nil
}

// Empty returns no tree with an error.
func Empty(text *C.char) (*Tree, error) { // want Empty:`params\[0\]` Empty:`results\[0\]$`
	t := &Tree{C.tree_parse(text)}
	if err := t.check(); err != nil {
		t.Close()
		t = nil
		return t, err
	}
	if t == nil {
		return t, errBroken
	}
	return t, nil
}

// Again returns what Empty has, and its error.
func Again(text *C.char) (*Tree, error) { // want Again:`params\[0\]` Again:`results\[0\]$`
	t, err := Empty(text)
	if err != nil {
		return t, err
	}
	return t, nil
}

// Missing returns a struct around nothing with an error.
func Missing(text *C.char) (Tree, error) { // want Missing:`params\[0\]` Missing:`results\[0\]$`
	h := C.tree_parse(text)
	t := Tree{h}
	if h == nil {
		return t, errBroken
	}
	if t.t == nil {
		return t, fmt.Errorf("nothing")
	}
	return t, nil
}

// Wrapped returns an object around nothing with an error.
func Wrapped(text *C.char) (*Tree, error) { // want Wrapped:`params\[0\]` Wrapped:`results\[0\]$`
	h := C.tree_parse(text)
	t := &Tree{h}
	if h != nil {
		return t, nil
	}
	return t, errors.New("no tree")
}

// Reversed is like Wrapped.
func Reversed(text *C.char) (*Tree, error) { // want Reversed:`params\[0\]` Reversed:`results\[0\]$`
	h := C.tree_parse(text)
	t := &Tree{h}
	if nil == h {
		return t, errors.New("no tree")
	}
	return t, nil
}

// Copy returns memory with an error.
func Copy(text string) (unsafe.Pointer, error) { // want Copy:`results\[0\] beside an error\[0\]`
	p := unsafe.Pointer(C.CString(text))
	if text == "" {
		return p, errors.New("nothing is there")
	}
	return p, nil
}

func lost(text *C.char) error {
	t, err := Parse(text) // want `the result of Parse is not freed on the way to the return in line \d+: it may come with an error as well`
	if err != nil {
		return err
	}
	t.Close()
	return nil
}

func closedFirst(text *C.char) error {
	t, err := Parse(text)
	defer t.Close()
	return err
}

func closedIfThere(text *C.char) error {
	t, err := Parse(text)
	if err != nil {
		if t != nil {
			t.Close()
		}
		return err
	}
	t.Close()
	return nil
}

func strict(text *C.char) error {
	t, err := Strict(text)
	if err != nil {
		return err
	}
	t.Close()
	return nil
}

func empty(text *C.char) error {
	t, err := Again(text)
	if err != nil {
		return err
	}
	t.Close()
	return nil
}

// valid reports whether there is a tree.
func (t *Tree) valid() bool { return t.t != nil }

func (t *Tree) made() bool { return t.t != nil }

func (t *Tree) large() bool { return C.tree_check(t.t) > 100 }

// Valid returns an object around nothing with an error.
func Valid(text *C.char) (*Tree, error) { // want Valid:`params\[0\]` Valid:`results\[0\]$`
	t := &Tree{C.tree_parse(text)}
	if !t.valid() {
		return t, errBroken
	}
	return t, nil
}

// Made is like Valid.
func Made(text *C.char) (*Tree, error) { // want Made:`params\[0\]` Made:`results\[0\]$`
	t := &Tree{C.tree_parse(text)}
	if t.made() {
		return t, nil
	}
	return t, errBroken
}

// Null asks C.
func Null(text *C.char) (*Tree, error) { // want Null:`params\[0\]` Null:`results\[0\]$`
	t := &Tree{C.tree_parse(text)}
	if C.tree_is_null(t.t) != 0 {
		return t, errBroken
	}
	return t, nil
}

// Large returns a tree that is too large, with an error.
func Large(text *C.char) (*Tree, error) { // want Large:`params\[0\]` Large:`results\[0\] beside an error\[0\]`
	t := &Tree{C.tree_parse(text)}
	if t.large() {
		return t, errBroken
	}
	return t, nil
}
