// Package bench holds the benchmarks that compare cheap with what a program
// would use in its place.
//
//	go test -bench Ratio -benchtime 1x ./bench
//
// prints a line for each promise about speed: the ratio that was measured,
// under the name of what it is relative to, and the bar that it is to stay
// under. A ratio comes from short rounds in which the two sides take turns, so
// it holds on a machine whose clock or load changes. The other benchmarks give
// the times.
//
// What it costs to own resources of C is promised for one P and for two, on the
// clock and on processors:
//
//	go test -bench OwnRatio -benchtime 1x -cpu 1,2 ./bench
//
// OwnLive and OwnTail report in the same way what live owners cost a collection
// and how long the slowest registrations take.
//
// Nothing here fails because something is slow.
package bench
