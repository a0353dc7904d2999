//go:build cgo

package calls

import "sync/atomic"

// Flagged reports whether C has been told to end the run that goes on.
func (l *List) Flagged() bool { return atomic.LoadUint64((*uint64)(&l.run.flag)) != 0 }
