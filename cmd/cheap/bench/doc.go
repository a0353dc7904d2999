// Package bench holds the benchmarks that compare cheap with what a program would use
// instead.
//
//	go test -bench Ratio -benchtime 1x ./bench
//
// prints a line for each promise about speed: the measured ratio, under the name of
// the other side, and the bar, which the ratio should not exceed. A ratio comes from
// short rounds in which the two sides take turns, so it holds on a machine whose
// clock or load changes. The other benchmarks give the times.
//
// The cost of owning resources of C is promised for one P and for two, in wall-clock
// time and in processor time:
//
//	go test -bench OwnRatio -benchtime 1x -cpu 1,2 ./bench
//
// OwnLive and OwnTail report in the same way what live owners cost a collection
// and how long the slowest registrations take.
//
// Nothing here fails because something is slow.
package bench
