//go:build !linux

package osmem

import "errors"

func sysSetName(addr, size uintptr, p Purpose) error { return errors.ErrUnsupported }
