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

// Calibrate runs a command that ends in calibrator.Main, and returns what its profiles say.
func Calibrate(ctx context.Context, command *exec.Cmd) (Calibration, error) {
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			return Calibration{}, ctx.Err()
		}
		// The runtime complains there about the rate. The last line is that of the command.
		if lines := strings.Split(strings.TrimSpace(stderr.String()), "\n"); lines[len(lines)-1] != "" {
			return Calibration{}, errors.New(lines[len(lines)-1])
		}
		return Calibration{}, err
	}
	var r calibrator.Result
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		return Calibration{}, err
	}
	return calibrationOf(&r)
}

// calibrationOf computes the ratios from the profiles.
func calibrationOf(r *calibrator.Result) (Calibration, error) {
	cal := Calibration{Go: r.Go, From: "this machine", CallNs: r.CallNs - r.CNs, CallbackNs: r.CallbackNs - r.CNs}
	calls, err := measured(r.Calls)
	if err != nil {
		return cal, err
	}
	callbacks, err := measured(r.Callbacks)
	if err != nil {
		return cal, err
	}
	stored := StoredCalibration(r.Go)
	cal.PerCall = ratio(calls.flat-calls.total*r.CNs/r.CallNs, calls.transitions, calls).and(stored.PerCall)
	cal.PerCallback = ratio(callbacks.flat-callbacks.total*r.CNs/r.CallbackNs, callbacks.callbacks, callbacks).and(stored.PerCallback)
	if calls.transitions == 0 || callbacks.callbacks == 0 {
		return cal, errors.New("the profiles of the calibration have no samples; other programs may be using the machine")
	}
	return cal, nil
}

// StoredCalibration returns what was measured on the machine of docs/report.json, for a version
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

// and joins two independent figures, by the width of their ranges.
func (r Ratio) and(other Ratio) Ratio {
	a, b := 1/square((r.High-r.Low)/2+1e-9), 1/square((other.High-other.Low)/2+1e-9)
	value, width := (r.Value*a+other.Value*b)/(a+b), math.Sqrt(1/(a+b))
	return Ratio{Value: value, Low: math.Max(0, value-width), High: value + width}
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

// ratio divides the hidden samples by the ones that are seen. Its range is that of two standard
// errors of the counts.
func ratio(hidden, seen float64, g *group) Ratio {
	if seen <= 0 {
		return Ratio{High: math.Inf(1)}
	}
	hidden = math.Max(0, hidden)
	width := 2 * math.Sqrt(math.Max(1, g.flat)+square(hidden)/seen) / seen
	return Ratio{Value: hidden / seen, Low: math.Max(0, hidden/seen-width), High: hidden/seen + width}
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
		"main.go": "package main\n\nimport (\n\t\"os\"\n\t\"time\"\n\n\t\"calibrate/calibrator\"\n)\n\nfunc main() {\n\tif calibrator.Main(os.Stdout, " + fmt.Sprint(int64(CalibrationTime)) + "*time.Nanosecond) != nil {\n\t\tos.Exit(1)\n\t}\n}\n",
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
