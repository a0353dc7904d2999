package main

/*
#include "work.h"
*/
import "C"

import (
	"runtime"
	"sync/atomic"
	"time"
)

// An object has a cleanup, a finalizer, or nothing.
type object struct {
	next *object
	_    int
}

// inRound is how many objects a round of a scene has.
const inRound = 50_000

var (
	objects = make([]*object, inRound)
	ran     atomic.Int64 // cleanups and finalizers
)

// records are the ways to register a call.
var records = map[string]func(o *object){
	"nothing": func(*object) {},
	// AddCleanup allocates three small objects. The collector finds the first by the record, which
	// is a part of releasing, and the other two by the first, which is not. Here two objects are
	// found by the list of them.
	"garbage":   func(o *object) { o.next = new(object) },
	"cleanup":   func(o *object) { runtime.AddCleanup(o, func(int) { ran.Add(1) }, 1) },
	"finalizer": func(o *object) { runtime.SetFinalizer(o, func(*object) { ran.Add(1) }) },
	"cleanup-c": func(o *object) {
		runtime.AddCleanup(o, func(int) {
			C.noop()
			ran.Add(1)
		}, 1)
	},
}

func init() {
	for _, name := range []string{"cleanup", "cleanup-c", "finalizer"} {
		scenes[name] = scene{
			run:   func(int) { recordRound(name, func() time.Duration { return 0 }) },
			truth: func() map[string]float64 { return recordTruth(name) },
		}
	}
}

// recordTime is how long rounds with records are timed. They become shorter with time, by a fifth
// in some seconds: the memory of the records is in another order then. So it is as long as the
// tests profile.
const recordTime = 3 * time.Second

// recordTruth times both halves of a round, with and without records.
func recordTruth(name string) map[string]float64 {
	garbage := "garbage"
	if name == "finalizer" {
		garbage = "nothing" // it allocates nothing in the Go heap
	}
	register, release := recordHalves(name, recordTime)
	plain, _ := recordHalves("nothing", recordTime/10)
	_, collected := recordHalves(garbage, recordTime/10)
	all := register + release
	truth := map[string]float64{"register": (register - plain) / all, "release": (release - collected) / all}
	if name == "cleanup-c" {
		truth["crossing"] = timed(noops)[0] * inRound / all
	}
	return truth
}

// recordHalves returns the mean time of both halves of a round.
func recordHalves(name string, length time.Duration) (register, release float64) {
	rounds := 0.0
	for start := cpu(); cpu()-start < length; rounds++ {
		r1, r2 := recordRound(name, cpu)
		register, release = register+float64(r1), release+float64(r2)
	}
	return register / rounds, release / rounds
}

// recordRound makes objects, forgets them, and collects until the calls for all of them ran. It
// returns the time of both halves.
func recordRound(name string, clock func() time.Duration) (register, release time.Duration) {
	before := ran.Load()
	start := clock()
	makeObjects(records[name])
	register = clock() - start
	start = clock()
	if name != "garbage" {
		clear(objects)
	}
	runtime.GC()
	if name == "nothing" || name == "garbage" {
		clear(objects)
		runtime.GC()
	} else {
		for ran.Load() < before+inRound {
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
	}
	return register, clock() - start
}

//go:noinline
func makeObjects(record func(*object)) {
	for i := range objects {
		objects[i] = new(object)
		record(objects[i])
	}
}

// A phase is a part of the mixture.
type phase struct {
	name string
	run  func()
}

var sum int

var phases = []phase{
	{"go", func() {
		for i := range 6_000_000 {
			sum += i * sum
		}
	}},
	{"noop", func() { noops(200_000) }},
	{"spin", func() { C.spins(3_000, 2_000) }},
	{"callback", func() {
		for range 10_000 {
			C.call_go(10)
		}
	}},
	{"cstring", func() { scenes["cstring"].run(50_000) }},
	{"register", func() { makeObjects(records["cleanup"]) }},
	{"release", func() {
		clear(objects)
		before := ran.Load()
		for runtime.GC(); ran.Load() < before+inRound; runtime.GC() {
			time.Sleep(time.Millisecond)
		}
	}},
}

func init() {
	scenes["mixture"] = scene{
		run: func(int) {
			for _, p := range phases {
				p.run()
			}
		},
		truth: mixtureTruth,
	}
}

// mixtureTruth times the phases, and takes the parts of each from the truth of the scene that
// has it alone.
func mixtureTruth() map[string]float64 {
	lists := make([][]float64, len(phases))
	for range 9 {
		for i, p := range phases {
			start := cpu()
			p.run()
			lists[i] = append(lists[i], float64(cpu()-start))
		}
	}
	all := 0.0
	of := map[string]float64{}
	for i, ns := range medians(lists) {
		of[phases[i].name] = ns
		all += ns
	}
	for name := range of {
		of[name] /= all
	}
	noop, callback, cstring := scenes["noop"].truth(), scenes["callback-10"].truth(), scenes["cstring"].truth()
	alone := scenes["cleanup"].truth()
	made := alone["register"] + alone["release"]
	records := (of["register"] + of["release"]) * made
	return map[string]float64{
		"c":        of["spin"] + of["noop"]*noop["c"] + of["callback"]*callback["c"] + of["cstring"]*cstring["c"],
		"crossing": of["noop"]*noop["crossing"] + of["callback"]*callback["crossing"] + of["cstring"]*(1-cstring["c"]),
		"callback": of["callback"] * callback["callback"],
		"strings":  of["cstring"],
		"register": records * alone["register"] / made,
		"release":  records * alone["release"] / made,
	}
}
