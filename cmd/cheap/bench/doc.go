// Package bench holds the benchmarks that compare cheap with what a program
// would use in its place.
//
//	go test -bench Ratio -benchtime 1x ./bench
//
// prints a line for each promise about speed: the ratio that was measured,
// under the name of what it is relative to, and the bar that it is to stay
// under. A ratio comes from rounds of a few milliseconds in which the two sides
// take turns, so it holds on a machine whose clock or load changes. The other
// benchmarks give the times.
//
// Nothing here fails because something is slow.
package bench
