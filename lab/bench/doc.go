// Package bench holds the benchmarks that compare cheap with what a program would use
// instead.
//
//	go test -run='^$' -bench=Ratio -benchtime=1x ./bench
//
// reports a ratio for each promise about speed, under the name of the other side. A ratio
// comes from short rounds in which the two sides take turns, so it holds on a machine whose
// clock or load changes. The other benchmarks give the times.
//
// The cost of owning resources of C is promised for one P and for two, in wall-clock
// time and in processor time:
//
//	go test -run='^$' -bench='OwnRatio|OwnLive|OwnTail' -benchtime=1x -cpu=1 ./bench
//	go test -run='^$' -bench='OwnRatio|OwnLive|OwnTail' -benchtime=1x -cpu=2 ./bench
//
// It takes two runs: with -benchtime=1x, go test runs the first of -cpu=1,2 on two Ps as
// well. OwnLive and OwnTail report what live owners cost a collection and how long the slowest
// registrations take.
//
// Behind the benchmarks stands a table: what was measured for each promise, the bar that it is
// to stay under, whether it does, and the regression limit, above which something has become
// worse than it was. The promises are in one list, and docs/architecture.md shows it. With
// -limits a benchmark above its limit fails. Otherwise nothing here fails because something is
// slow.
package bench
