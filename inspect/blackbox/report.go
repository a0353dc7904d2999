package blackbox

import "time"

// A Report is what a black box says.
type Report struct {
	Process Process `json:"process"`
	State   State   `json:"state"`
	Last    *Record `json:"last"`              // the newest whole record; nil if there is none
	Damaged int     `json:"damaged,omitempty"` // slots that are not whole: one, if the process ended while it wrote

	// KilledSince is how many processes of its cgroup the kernel has killed since the last record, for
	// want of memory. It is -1 where that is not known, as when the cgroup is gone.
	KilledSince int64 `json:"killed_since"`
}

// A State says how the process of a black box has ended.
type State string

// The states.
const (
	Running State = "running" // a process has the file open
	Stopped State = "stopped" // it has called Stop
	Ended   State = "ended"   // it was killed, it has crashed, or it ended without Stop
	Unknown State = "unknown" // it has not called Stop, and may be running: this system does not say
)

// A Process is who has written a black box.
type Process struct {
	Program string    `json:"program"` // the name of its file, without the folder
	PID     int       `json:"pid"`     // in its own namespace
	Go      string    `json:"go"`      // the version of Go
	System  string    `json:"system"`  // such as linux/amd64
	Started time.Time `json:"started"` // when it has called Start
}

// A Record is what was known at one moment. It has names and figures, and no contents of memory. Figures
// are bytes. Lists begin with the largest.
type Record struct {
	Number  int64     `json:"number"` // from 1 on
	Time    time.Time `json:"time"`
	Stopped bool      `json:"stopped,omitempty"` // the process has called Stop after this record

	Verdict string `json:"verdict,omitempty"` // a sentence
	Advice  string `json:"advice,omitempty"`  // what to do

	Container *Container `json:"container,omitempty"` // nil where no cgroup is known
	Resident  int64      `json:"resident,omitempty"`  // of the process
	Swap      int64      `json:"swap,omitempty"`
	Parts     []Figure   `json:"parts,omitempty"` // of Resident and Swap

	Pools     []Figure `json:"pools,omitempty"`     // of package own
	Heaps     []Figure `json:"heaps,omitempty"`     // of package cheap
	Libraries []Figure `json:"libraries,omitempty"` // C by library, estimates of module cmem
	C         []Stack  `json:"c,omitempty"`         // the stacks of C with the most bytes in use, of module cmem
	Owners    []Stack  `json:"owners,omitempty"`    // the stacks that made the open owners; see inspect.EnableLeaks
	Blocks    []Stack  `json:"blocks,omitempty"`    // the stacks that allocated blocks of heaps; see inspect.SetRate

	Notes []string `json:"notes,omitempty"` // what is not known, and why

	Kills *Kills `json:"kills,omitempty"` // nil where no cgroup is known
}

// Kills is how many processes the kernel has killed in the cgroup of the process, for want of memory.
type Kills struct {
	File  string `json:"file"`  // that has the count
	Inode uint64 `json:"inode"` // of the file: a cgroup that is made again has another one
	Count int64  `json:"count"`
}

// A Figure is a name with bytes.
type Figure struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
	Swap  int64  `json:"swap,omitempty"`  // bytes of a part that were swapped out, not in Bytes
	Count int64  `json:"count,omitempty"` // of owners or blocks
}

// A Stack is a stack with the bytes in use that it has allocated.
type Stack struct {
	Name  string   `json:"name"` // of a library or a pool, or ""
	Bytes int64    `json:"bytes"`
	Calls []string `json:"calls"` // innermost first: a function, and of Go its file and line
}

// A Container is the memory cgroup of the process, or the one around it that leaves least room.
type Container struct {
	Charged  int64   `json:"charged"`
	Limit    int64   `json:"limit,omitempty"` // 0 if there is none
	High     int64   `json:"high,omitempty"`  // from here on the kernel slows the processes down
	Swap     int64   `json:"swap,omitempty"`
	Cache    int64   `json:"cache,omitempty"`     // the part of Charged that are pages of files, which the kernel drops first
	OOM      int64   `json:"oom,omitempty"`       // how often the limit was met
	OOMKills int64   `json:"oom_kills,omitempty"` // processes that the kernel has killed
	Pressure float64 `json:"pressure,omitempty"`  // percent of the last 10 seconds in which a process waited for memory
}

// shrink leaves something out of a record that is too long, and reports whether there was something
// left to leave out: the outer half of long stacks, then the last of each list.
func (r *Record) shrink() bool {
	const fewCalls = 4
	done := false
	for _, list := range [][]Stack{r.C, r.Owners, r.Blocks} {
		for i := range list {
			if n := len(list[i].Calls); n > fewCalls {
				list[i].Calls, done = list[i].Calls[:max(fewCalls, n/2)], true
			}
		}
	}
	if done {
		return true
	}
	for _, list := range []*[]Stack{&r.C, &r.Owners, &r.Blocks} {
		if n := len(*list); n > 0 {
			*list, done = (*list)[:n-max(1, n/4)], true
		}
	}
	for _, list := range []*[]Figure{&r.Pools, &r.Heaps, &r.Libraries, &r.Parts} {
		if n := len(*list); n > 1 || n > 0 && !done {
			*list, done = (*list)[:n-max(1, n/4)], true
		}
	}
	if !done && len(r.Notes) > 0 {
		r.Notes, done = nil, true
	}
	if !done && len(r.Verdict)+len(r.Advice) > 0 {
		r.Verdict, r.Advice, done = "", "", true
	}
	return done
}
