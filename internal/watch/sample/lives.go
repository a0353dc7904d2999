package sample

import "time"

// A Life adds up the lives of blocks that lived about equally long.
type Life struct {
	Blocks float64
	Total  float64 // of their lives, in nanoseconds
}

// Ages is the number of ranges in which the lives of blocks are counted. The first is up to
// 10 µs, each is ten times as long as the one before, and the last has no end.
const Ages = 10

// ageOf returns the range of a life.
func ageOf(d time.Duration) int {
	i := 0
	for limit := 10 * time.Microsecond; i < Ages-1 && d >= limit; limit *= 10 {
		i++
	}
	return i
}

// AgeLimit returns the end of range i, or 0 for the last one.
func AgeLimit(i int) time.Duration {
	if i >= Ages-1 {
		return 0
	}
	d := 10 * time.Microsecond
	for range i {
		d *= 10
	}
	return d
}
