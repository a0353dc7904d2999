package pace

import (
	"runtime/metrics"
	"time"
)

// A reading is a set of the runtime's metrics, read at one moment.
type reading struct {
	heap     int64 // bytes of objects, unswept dead ones included
	live     int64 // bytes that the last collection found reachable
	goal     int64 // bytes of objects with which the next collection has begun
	total    int64 // bytes that the runtime has from the system and has not returned
	reserve  int64 // the part of total that is free or unused in the heap, and can be returned
	cycles   int64 // collections that have ended
	queued   int64 // cleanups and finalizers ever queued
	executed int64 // cleanups and finalizers ever executed
	gogc     int   // negative if off
	cpu      time.Duration
}

// Indices of names and of reader.samples.
const (
	heapObjects = iota
	heapLive
	heapGoal
	memoryTotal
	memoryReleased
	memoryFree
	memoryUnused
	gcCycles
	cleanupsQueued
	cleanupsExecuted
	finalizersQueued
	finalizersExecuted
	gogcPercent
	gcCPU
	gcIdle
	sampleCount
)

var names = [sampleCount]string{
	heapObjects:        "/memory/classes/heap/objects:bytes",
	heapLive:           "/gc/heap/live:bytes",
	heapGoal:           "/gc/heap/goal:bytes",
	memoryTotal:        "/memory/classes/total:bytes",
	memoryReleased:     "/memory/classes/heap/released:bytes",
	memoryFree:         "/memory/classes/heap/free:bytes",
	memoryUnused:       "/memory/classes/heap/unused:bytes",
	gcCycles:           "/gc/cycles/total:gc-cycles",
	cleanupsQueued:     "/gc/cleanups/queued:cleanups",
	cleanupsExecuted:   "/gc/cleanups/executed:cleanups",
	finalizersQueued:   "/gc/finalizers/queued:finalizers",
	finalizersExecuted: "/gc/finalizers/executed:finalizers",
	gogcPercent:        "/gc/gogc:percent",
	gcCPU:              "/cpu/classes/gc/total:cpu-seconds",
	gcIdle:             "/cpu/classes/gc/mark/idle:cpu-seconds",
}

// A reader makes readings. One goroutine at a time may use it.
type reader struct{ samples [sampleCount]metrics.Sample }

func (r *reader) read() reading {
	for i := range r.samples {
		r.samples[i].Name = names[i]
	}
	metrics.Read(r.samples[:])
	n := func(i int) int64 {
		if v := r.samples[i].Value; v.Kind() == metrics.KindUint64 {
			return int64(v.Uint64())
		}
		return 0 // not in this version of Go
	}
	seconds := func(i int) float64 {
		if v := r.samples[i].Value; v.Kind() == metrics.KindFloat64 {
			return v.Float64()
		}
		return 0
	}
	return reading{
		heap:     n(heapObjects),
		live:     n(heapLive),
		goal:     n(heapGoal),
		total:    n(memoryTotal) - n(memoryReleased),
		reserve:  n(memoryFree) + n(memoryUnused),
		cycles:   n(gcCycles),
		queued:   n(cleanupsQueued) + n(finalizersQueued),
		executed: n(cleanupsExecuted) + n(finalizersExecuted),
		gogc:     gogc(r.samples[gogcPercent].Value),
		cpu:      time.Duration((seconds(gcCPU) - seconds(gcIdle)) * float64(time.Second)),
	}
}

// gogc returns GOGC in percent, or -1 if the collector is off, which the metric
// shows as the largest number.
func gogc(v metrics.Value) int {
	if v.Kind() != metrics.KindUint64 || v.Uint64() > 1<<31-1 {
		return -1
	}
	return int(v.Uint64())
}
