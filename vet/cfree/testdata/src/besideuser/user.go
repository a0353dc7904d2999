// Package besideuser has no cgo.
package besideuser

import (
	"unsafe"

	"beside"
)

var kept unsafe.Pointer

func lost(s string) error {
	p, err := beside.Copy(s) // want `the result of beside.Copy is not freed on the way to the return in line 15: it may come with an error as well`
	if err != nil {
		return err
	}
	kept = p
	return nil
}

func tree() error {
	t, err := beside.Parse(nil) // want `not freed on the way to the return in line 24`
	if err != nil {
		return err
	}
	defer t.Close()
	return nil
}

func both() (*beside.Tree, error) { // want both:`results\[0\]`
	t, err := beside.Checked(nil)
	return t, err
}
