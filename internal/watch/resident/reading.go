package resident

import "time"

// A Reading is what is known of the memory of a process at one moment. All numbers are bytes unless
// something else is said. What is not known is zero.
type Reading struct {
	Time     time.Time
	Kernel   Kernel
	Go       Go
	Cheap    Cheap
	C        C
	Malloc   Malloc
	Mappings *Mappings // nil if they were not read
	Cgroup   Cgroup
	Pools    []Holder // of package own, with the sizes that they declare, and accounts of package pace
	Heaps    []Holder // of package cheap
	Pace     Pace
	Threads  []Threads // as the last list of mappings has shown them; before that those of Go, and of C, without more
}

// Pace is what package pace knows. It is zero before pace is started, but for Keepers.
type Pace struct {
	Limit   int64    // of the memory of the process, 0 if there is none
	Keepers []Keeper // caches that give nothing
}

// A Keeper is a cache that package pace has asked for memory, and that has freed nothing.
type Keeper struct {
	Name   string
	Held   int64 // as it says, or -1
	Misses int64 // how often in a row it has freed nothing
	Asked  int64 // the bytes that it was asked for, ever
	Freed  int64 // those that became free then
	Slow   bool  // its function has not returned for a second
}

// Kernel is what the kernel says of the process.
type Kernel struct {
	Resident  int64 // the sum of the next three
	Anonymous int64 // no pages of files
	File      int64 // pages of files that are mapped
	Shared    int64 // shared memory, and files of tmpfs that are mapped
	Swap      int64 // anonymous bytes that were swapped out
	Threads   int64 // a count
	CPUs      int64 // processors that the process may use, a count
}

// Go is what the runtime says.
type Go struct {
	Objects    int64 // in use in the heap, garbage included
	Idle       int64 // free in the heap, and not returned to the system
	Stacks     int64
	Runtime    int64 // what the runtime keeps of everything
	Live       int64 // objects that the last collection found reachable
	Percent    int   // GOGC, -1 if it is off
	Goroutines int64 // a count
	Outside    int64 // of these, goroutines in C or in a call of the system
	Threads    int64 // a count
}

// Cheap is what package cheap has of the system.
type Cheap struct {
	InUse   int64 // blocks of heaps in use
	Idle    int64 // free blocks that were in use before, and idle units
	Records int64 // what heaps and package own keep of blocks and owners
}

// C is what module cmem counts of the C heap.
type C struct {
	Known     bool
	Live      int64    // in use, an estimate
	Held      int64    // what malloc has taken for that: more, where blocks are small; 0 if that is not known
	Error     int64    // its standard deviation
	Most      int64    // the most that these two were since the last point of a History, or 0 if that is not known
	Libraries []Holder // who has allocated that, the largest first
	Growing
}

// Growing is what stacks of C have shown, in intervals that the Watcher ends.
type Growing struct {
	Sites  []Site        // those that have grown, the most first
	Over   time.Duration // in this time
	Steady bool          // they have grown in each of the last Intervals intervals; else in the last ones, which may be chance
}

// A Site is a stack of C and Go that has allocated blocks.
type Site struct {
	Library                 string
	Live, Grown, GrownError int64
	Stack                   string // as in the trace of a goroutine; functions of C first
}

// Malloc is what the malloc of the program has said when somebody looked inside. That takes its locks.
type Malloc struct {
	Known   bool
	InUse   int64
	Free    int64 // held and not in use; some of it may not be resident
	Arenas  int64 // a count, 0 if it is not known
	Bounded bool  // the number of arenas is bounded
	Gives   bool  // what is free for a second goes back to the system by itself

	Age     time.Duration // how old these numbers are
	Longest time.Duration // the longest look so far: at most so long, threads that allocate have waited
}

// A Holder is something that holds memory, such as a pool.
type Holder struct {
	Name  string
	Bytes int64 // held or declared
	Count int64 // of owners, or blocks
}

// Cgroup is what the memory cgroup of the process is charged, and may be: the one of its own cgroup and
// those around it that leaves least room, or its own cgroup if none has a limit.
type Cgroup struct {
	Known   bool
	Charged int64
	Limit   int64 // memory.max, or memory.high if that is less; 0 if there is none
	High    int64 // from here on the kernel slows the processes down; 0 if there is none
	Swap    int64

	// Parts of Charged.
	Anonymous int64 // of all processes
	Cache     int64 // pages of files, which the kernel drops when memory is short
	Shared    int64 // shared memory and files of tmpfs
	Kernel    int64 // of the kernel, for the processes

	OOM, OOMKills int64   // how often the limit was met without a way out; how many processes were killed
	Pressure      float64 // the percentage of the last 10 seconds in which a process waited for memory

	Unread error // why no limit can be read, or nil
}
