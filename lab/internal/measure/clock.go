package measure

import "time"

// A clock says what time it is. The zero value asks the system. In tests the rows move it, so that
// an operation takes as long there as the row says.
type clock func() time.Time

func (c clock) now() time.Time {
	if c == nil {
		return time.Now()
	}
	return c()
}

func (c clock) since(begin time.Time) time.Duration { return c.now().Sub(begin) }
