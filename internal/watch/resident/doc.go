// Package resident says what the resident memory of a process is for, and what is wrong with it.
//
// A [Reading] has plain numbers: what the kernel, the Go runtime, package cheap, module cmem, malloc
// and the cgroup have said at one moment. [Reading.Table] divides the resident bytes among parts,
// which add up. [Judge] makes a [Verdict] of a reading and of the ones before it: a sentence, and what
// to do. Both are functions of their arguments.
//
// A [Watcher] reads, and keeps what growth is told by. It does nothing while nobody asks it.
//
//	reading.go        the numbers
//	table.go          the parts
//	mappings.go       the list of mappings, by what they are
//	blocks_linux.go   blocks of malloc that have a mapping of their own
//	points.go         what is kept of readings, and growth
//	verdict.go        the rules, in their order
//	grown.go          the rules about what grows
//	held.go           the rules about what is held
//	cgroup.go         what the cgroups of the process are charged
//	self.go           what is known of the addresses of this process
//	watcher.go        where the numbers come from
package resident
