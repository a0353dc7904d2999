package explain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"github.com/cheapgo/cheap/cmd/cheap/internal/explain/calibrator"
)

// CalibrationTime is how long a calibration takes.
const CalibrationTime = 2 * time.Second

// processes is how many processes calibrate, one after the other. The system puts the code and the
// stacks of each elsewhere, and that makes the runtime's part of a call, as a profile shows it,
// longer or shorter by some hundredths of the call.
const processes = 8

// ProcessTime is how long one of them measures.
const ProcessTime = CalibrationTime / processes

// Calibrate runs a command, which calls calibrator.Main, some times, and returns what its profiles
// say.
func Calibrate(ctx context.Context, name string, args ...string) (Calibration, error) {
	var results []*calibrator.Result
	for range processes {
		r, err := runCalibrator(exec.CommandContext(ctx, name, args...))
		if ctx.Err() != nil {
			return Calibration{}, ctx.Err()
		} else if err != nil {
			return Calibration{}, err
		}
		results = append(results, r)
	}
	return calibrationOf(results)
}

func runCalibrator(command *exec.Cmd) (*calibrator.Result, error) {
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		// The runtime complains there about the rate. The last line is that of the command.
		if lines := strings.Split(strings.TrimSpace(stderr.String()), "\n"); lines[len(lines)-1] != "" {
			return nil, errors.New(lines[len(lines)-1])
		}
		return nil, err
	}
	r := new(calibrator.Result)
	return r, json.Unmarshal(stdout.Bytes(), r)
}

// calibrationOf computes the ratios from the profiles of some processes. What a call hides is more
// where the function has a result, and most where that is a struct. A profile does not say which kind
// a function is, so the ratio is the mean of the kinds, and its range that of all.
func calibrationOf(results []*calibrator.Result) (Calibration, error) {
	cal := Calibration{Go: results[0].Go, From: "this machine"}
	kinds := make([]hidden, len(results[0].Kinds))
	var callbacks hidden
	for _, r := range results {
		n := float64(len(results))
		for i, k := range r.Kinds {
			cal.CallNs += (k.CallNs - k.CNs) / n / float64(len(kinds))
			g, err := measured(k.Calls)
			if err != nil {
				return cal, err
			}
			kinds[i].add(g.flat-g.total*k.CNs/k.CallNs, g.transitions, g.flat)
		}
		nothing := r.Kinds[0].CNs
		cal.CallbackNs += (r.CallbackNs - nothing) / n
		g, err := measured(r.Callbacks)
		if err != nil {
			return cal, err
		}
		callbacks.add(g.flat-g.total*nothing/r.CallbackNs, g.callbacks, g.flat)
	}
	cal.PerCall = Ratio{Low: math.Inf(1)}
	for i := range kinds {
		r := kinds[i].ratio()
		cal.PerCall.Value += r.Value / float64(len(kinds))
		cal.PerCall.Low, cal.PerCall.High = math.Min(cal.PerCall.Low, r.Low), math.Max(cal.PerCall.High, r.High)
	}
	cal.PerCallback = callbacks.ratio()
	if math.IsInf(cal.PerCall.High, 1) || math.IsInf(cal.PerCallback.High, 1) {
		return cal, errors.New("the profiles of the calibration have no samples; other programs may be using the machine")
	}
	return cal, nil
}

// hidden has the samples of some processes that look like C and are none.
type hidden struct {
	hidden, seen, flat float64 // seen: of what the ratio is to
	ratios             []float64
}

func (h *hidden) add(samples, seen, flat float64) {
	h.hidden, h.seen, h.flat = h.hidden+samples, h.seen+seen, h.flat+flat
	if seen > 0 {
		h.ratios = append(h.ratios, samples/seen)
	}
}

// ratio divides the hidden samples by the ones that are seen. Its range is that of two standard
// errors of the counts, or of two standard deviations of the processes, of which the one that is
// explained is another: the larger one.
func (h *hidden) ratio() Ratio {
	if h.seen <= 0 {
		return Ratio{High: math.Inf(1)}
	}
	sum := math.Max(0, h.hidden)
	value := sum / h.seen
	width := math.Sqrt(math.Max(1, h.flat)+square(sum)/h.seen) / h.seen
	if n := float64(len(h.ratios)); n > 1 {
		variance := 0.0
		for _, r := range h.ratios {
			variance += square(r-h.hidden/h.seen) / (n - 1)
		}
		width = math.Max(width, math.Sqrt(variance*(1+1/n)))
	}
	return Ratio{Value: value, Low: math.Max(0, value-2*width), High: value + 2*width}
}

// StoredCalibration returns what was measured on the machine of docs/reference/report.json, for a version
// of Go, such as go1.26.8 or 1.26. It is for profiles of versions that are not here. Its ranges
// are wide: other processors differ.
func StoredCalibration(version string) Calibration {
	version = strings.TrimPrefix(version, "go")
	cal := Calibration{Go: "go1.26", From: "stored figures of another machine"}
	wide := func(call, callback float64) {
		cal.PerCall = Ratio{call, 0, 2*call + 0.05}
		cal.PerCallback = Ratio{callback, callback / 2, callback * 3 / 2}
	}
	switch {
	case strings.HasPrefix(version, "1.24"), strings.HasPrefix(version, "1.25"):
		cal.Go = "go" + version[:4]
		wide(0.02, 5.5)
	case strings.HasPrefix(version, "1.27"):
		cal.Go = "go1.27"
		wide(0.05, 3.3)
	default:
		wide(0.05, 3.2)
	}
	return cal
}

// measured sums up a profile of a loop.
func measured(data []byte) (*group, error) {
	p, err := profile.ParseData(data)
	if err != nil {
		return nil, err
	}
	g := newGroup()
	k := newClassifier(p, false)
	for _, s := range p.Sample {
		g.add(k.classify(frames(s)), float64(s.Value[0]), s.Value[0])
	}
	return g, nil
}

// BuildCalibrator builds the calibrator with the go command as it is in a folder, and returns
// the program, which is in the folder out.
func BuildCalibrator(ctx context.Context, dir, out string) (string, error) {
	version, err := goVersion(ctx, dir)
	if err != nil {
		return "", err
	}
	source := filepath.Join(out, "calibrate")
	files := map[string]string{
		"go.mod":  "module calibrate\n\ngo 1.24\n",
		"main.go": "package main\n\nimport (\n\t\"os\"\n\t\"time\"\n\n\t\"calibrate/calibrator\"\n)\n\nfunc main() {\n\tif calibrator.Main(os.Stdout, " + fmt.Sprint(int64(ProcessTime)) + "*time.Nanosecond) != nil {\n\t\tos.Exit(1)\n\t}\n}\n",
	}
	err = fs.WalkDir(calibrator.Source, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := calibrator.Source.ReadFile(name)
		files["calibrator/"+name] = string(text)
		return err
	})
	if err != nil {
		return "", err
	}
	for name, text := range files {
		name = filepath.Join(source, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	program := filepath.Join(out, "calibrator.exe")
	command := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	command.Dir = source
	command.Env = append(os.Environ(), "GOTOOLCHAIN="+version, "GOWORK=off", "GOFLAGS=-mod=mod", "CGO_ENABLED=1")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build of the calibration: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return program, nil
}

// goVersion returns the version of the go command in a folder, such as go1.26.8.
func goVersion(ctx context.Context, dir string) (string, error) {
	command := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	command.Dir = dir
	output, err := command.Output()
	version, _, _ := strings.Cut(strings.TrimSpace(string(output)), " ")
	return version, err
}
