package explain

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/google/pprof/profile"
)

// A NotCPUError says that what was read is no CPU profile, and what it is instead.
type NotCPUError struct{ Is string }

func (e *NotCPUError) Error() string {
	return e.Is + ", and not a CPU profile; /debug/pprof/profile, go test -cpuprofile and runtime/pprof.StartCPUProfile make one"
}

func notCPU(format string, args ...any) error { return &NotCPUError{fmt.Sprintf(format, args...)} }

// Read reads a CPU profile. For anything else the error is a *NotCPUError.
func Read(data []byte) (*profile.Profile, error) {
	if is := otherFormat(data); is != "" {
		return nil, notCPU("%s", is)
	}
	p, err := profile.ParseData(data)
	if err != nil {
		if utf8.Valid(data[:min(len(data), 1024)]) {
			return nil, notCPU("this is a text")
		}
		return nil, notCPU("this is no profile (%v)", oneLine(err))
	}
	if is := otherProfile(p); is != "" {
		return nil, notCPU("%s", is)
	}
	value, _ := valueOf(p)
	positive := false
	for _, s := range p.Sample {
		if s.Value[value] < 0 {
			return nil, notCPU("this is the difference of two profiles")
		}
		positive = positive || s.Value[value] > 0
	}
	if !positive {
		return nil, errors.New("the profile has no samples: the program did not use the processor, or for less than 10 ms")
	}
	return p, nil
}

func oneLine(err error) string {
	return string(bytes.Join(bytes.Fields([]byte(err.Error())), []byte(" ")))
}

// otherFormat knows files that are no profiles by how they begin.
func otherFormat(data []byte) string {
	begins := func(text string) bool { return bytes.HasPrefix(data, []byte(text)) }
	trimmed := bytes.TrimLeft(data[:min(len(data), 1024)], " \t\r\n")
	switch {
	case len(data) == 0:
		return "this is empty"
	case begins("go 1.") && bytes.Contains(data[:min(len(data), 32)], []byte(" trace\x00")):
		return "this is an execution trace, for go tool trace"
	case begins("PERFILE2"):
		return "this is a file of Linux perf"
	case begins("\x7fELF"), begins("MZ"), begins("\xcf\xfa\xed\xfe"):
		return "this is a program"
	case begins("goroutine profile:"):
		return "this is a goroutine profile in text"
	case begins("heap profile:"):
		return "this is a heap profile in text"
	case begins("threadcreate profile:"):
		return "this is a profile of threads in text"
	case begins("--- mutex:"):
		return "this is a mutex profile in text"
	case begins("--- contention:"):
		return "this is a block profile in text"
	case begins("mode: "):
		return "this is a coverage profile"
	case bytes.HasPrefix(trimmed, []byte("<")):
		return "this is a page in HTML"
	case bytes.HasPrefix(trimmed, []byte("{")), bytes.HasPrefix(trimmed, []byte("[")):
		return "this is JSON"
	}
	return ""
}

// otherProfile knows profiles of other things by what they count.
func otherProfile(p *profile.Profile) string {
	has := func(kind string) bool {
		for _, t := range p.SampleType {
			if t.Type == kind {
				return true
			}
		}
		return false
	}
	switch {
	case has("cpu"):
		return ""
	case has("inuse_space") && p.DefaultSampleType == "alloc_space":
		return "this is a profile of allocations"
	case has("inuse_space"), has("alloc_space"):
		return "this is a heap profile"
	case has("contentions"):
		return "this is a mutex or block profile"
	case has("goroutine"), has("goroutineleak"):
		return "this is a goroutine profile"
	case has("threadcreate"):
		return "this is a profile of threads"
	}
	kinds := ""
	for i, t := range p.SampleType {
		if i > 0 {
			kinds += ", "
		}
		kinds += t.Type
	}
	if kinds == "" {
		return "this is an empty profile"
	}
	return "this is a profile of other values (" + kinds + ")"
}
