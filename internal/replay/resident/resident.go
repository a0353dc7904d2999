// Package resident reads how much memory of a process is in RAM and belongs to no
// file.
package resident

import "strconv"

// Self reads the memory of this process. The error is [errors.ErrUnsupported] if the
// system does not report it.
func Self() (*Reader, error) { return open("self") }

// Of reads the memory of another process of the same user, as Self does.
func Of(pid int) (*Reader, error) { return open(strconv.Itoa(pid)) }
