package gcwatch

import (
	"time"
)

// InBubble reports whether the goroutine is in a bubble of testing/synctest. What is
// started there belongs to the bubble: a timer runs on the bubble's time, and never
// if the bubble ends before; a goroutine keeps the bubble from ending. What has to
// outlive the bubble is started by a function that Next calls.
//
// Go does not tell a goroutine that it is in a bubble. But time there begins in the year
// 2000, and has no monotonic clock.
func InBubble() bool { return inBubble(time.Now()) }

func inBubble(now time.Time) bool { return now.Unix() < realClock || now == now.Round(0) }

// Clock returns a time in nanoseconds since the program has begun. Who sets the clock of the system does not change
// it. In a bubble it is far below 0.
func Clock(t time.Time) int64 { return int64(t.Sub(began)) }

var began = time.Now()

const realClock = 1_577_836_800 // the beginning of 2020, in Unix seconds
