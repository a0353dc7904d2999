package main

import (
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// report prints values, and with them the peak of the resident memory in MB, and the collections of
// the process.
func report(values map[string]float64) {
	status, err := os.ReadFile("/proc/self/status")
	check(err)
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	peak, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	check(err)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	values["resident"] = peak * 1024 / 1e6
	values["collections"] = float64(m.NumGC)
	check(json.NewEncoder(os.Stdout).Encode(values))
}

// anonymous returns how many MB of the resident memory are not of files. A mapped file is resident as
// long as the system has room.
func anonymous() float64 {
	text, err := os.ReadFile("/proc/self/statm")
	check(err)
	fields := strings.Fields(string(text))
	resident, err := strconv.Atoi(fields[1])
	check(err)
	shared, err := strconv.Atoi(fields[2])
	check(err)
	return float64((resident-shared)*os.Getpagesize()) / 1e6
}

// quantile returns the time in microseconds that a part of the operations did not exceed. It puts
// times in order.
func quantile(times []time.Duration, part float64) float64 {
	slices.Sort(times)
	return float64(times[int(part*float64(len(times)-1))].Nanoseconds()) / 1000
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
