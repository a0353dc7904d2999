// Known is a program whose shares of the processor are known. It is given the name of a
// scene, and does what the scene has, again and again:
//
//	known -for 3s noop
//	known -truth noop
//	known -for 3s -cpuprofile cpu.pprof noop
//
// With -truth it prints the shares as JSON: it times the scene and its parts, each in a
// loop of its own, by the processor time of the process, in rounds that take turns.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// A scene is what the program does.
type scene struct {
	run   func(n int)               // does it n times
	truth func() map[string]float64 // its shares
}

var scenes = map[string]scene{}

func main() {
	length := flag.Duration("for", 2*time.Second, "how much processor time the scene is repeated for")
	truth := flag.Bool("truth", false, "print the shares instead")
	profile := flag.String("cpuprofile", "", "write a CPU profile to this file")
	flag.Parse()
	s, ok := scenes[flag.Arg(0)]
	if !ok {
		fmt.Fprintln(os.Stderr, "known: the argument is no scene:", flag.Arg(0))
		os.Exit(2)
	}
	debug.SetGCPercent(-1) // the scenes collect by themselves
	runtime.GOMAXPROCS(1)  // idle processors would help the collector, as long as it has work
	if *truth {
		json.NewEncoder(os.Stdout).Encode(s.truth())
		return
	}
	if *profile != "" {
		f, err := os.Create(*profile)
		if err != nil {
			panic(err)
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			panic(err)
		}
		defer pprof.StopCPUProfile()
	}
	n := 1
	for start, begin := cpu(), time.Now(); cpu()-start < *length && time.Since(begin) < 10**length; {
		t := time.Now()
		s.run(n)
		if time.Since(t) < 20*time.Millisecond {
			n *= 2
		}
	}
}

// cpu is the processor time of the process until now, without that of the runtime's own thread,
// sysmon. A profile does not show that thread, and it is busy where a program calls C.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano()+u.Stime.Nano()) - sysmon()
}

// sysmonThread has the times of the second thread of the process, which is sysmon.
var sysmonThread = func() string {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		panic(err)
	}
	least := 0
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err == nil && id != os.Getpid() && (least == 0 || id < least) {
			least = id
		}
	}
	return fmt.Sprintf("/proc/self/task/%d/schedstat", least)
}()

func sysmon() time.Duration {
	text, err := os.ReadFile(sysmonThread)
	if err != nil {
		panic(err)
	}
	var ns int64
	fmt.Sscan(string(text), &ns)
	return time.Duration(ns)
}

// rounds is how often each part is timed.
const rounds = 41

// timed returns the nanoseconds of processor time of each part, in rounds that take turns: the
// median of the rounds.
func timed(parts ...func(n int)) []float64 {
	ns := make([][]float64, len(parts))
	sizes := make([]int, len(parts))
	for i, part := range parts {
		for sizes[i] = 1; ; sizes[i] *= 2 {
			start := cpu()
			part(sizes[i])
			if cpu()-start > 5*time.Millisecond {
				break
			}
		}
	}
	for range rounds {
		for i, part := range parts {
			start := cpu()
			part(sizes[i])
			ns[i] = append(ns[i], float64(cpu()-start)/float64(sizes[i]))
		}
	}
	return medians(ns)
}

// medians returns the median of each list.
func medians(lists [][]float64) []float64 {
	var list []float64
	for _, l := range lists {
		slices.Sort(l)
		list = append(list, l[len(l)/2])
	}
	return list
}
