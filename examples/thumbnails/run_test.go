//go:build linux && cgo && libjpeg

package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cheapgo/cheap/examples/thumbnails/internal/testcard"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestMain runs the command if this program is its child process: the command starts
// itself for each variant.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "-variant=") {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestRun(t *testing.T) {
	cards, empty := t.TempDir(), t.TempDir()
	if _, err := testcard.Make(cards, 2, 320, 240); err != nil {
		t.Fatal(err)
	}
	small := []string{"-n=6", "-size=320x240"}
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string // the first part of each
	}{
		{small, 0, "variant   thumbnails  seconds", ""},
		{[]string{"-n=4", "-dir=" + cards}, 0, "variant   thumbnails  seconds", ""},
		{[]string{"-n=4", "-width=320", "-dir=" + cards, "-variant=own"}, 0, `{"Points":[{"At":`, ""},
		{[]string{"-n=4", "-width=321", "-dir=" + cards, "-variant=own"}, 1, "", "thumbnails: " + cards},
		{[]string{"-n=4", "-width=321", "-dir=" + cards}, 1, "variant ", "thumbnails: cleanup: exit status 1: "},
		{[]string{"-dir=" + empty, "-variant=own"}, 1, "", "thumbnails: " + empty + ": no *.jpg\n"},
		{[]string{"-dir=" + filepath.Join(cards, "card 0.jpg"), "-variant=own"}, 1, "", "thumbnails: mkdir "},
		{append(small, "-every=1ms", filepath.Join(empty, "no", "chart.svg")), 1, "variant ", "thumbnails: open "},
		{[]string{"-h"}, 0, "usage: thumbnails [flags] [chart.svg]\n", ""},
		{[]string{"-n=x"}, 2, "", `thumbnails: invalid value "x" for flag -n`},
		{[]string{"-n=0"}, 2, "", "thumbnails: -n 0, -width 160, -workers "},
		{[]string{"-every=0s"}, 2, "", "thumbnails: -every 0s, -most 4: each is more than 0\n"},
		{[]string{"-size=320"}, 2, "", `thumbnails: invalid value "320" for flag -size`},
		{[]string{"-size=0x5"}, 2, "", `thumbnails: invalid value "0x5" for flag -size`},
		{[]string{"-size=70000x5"}, 2, "", `thumbnails: invalid value "70000x5" for flag -size`},
		{[]string{"-variant=own"}, 2, "", "thumbnails: -variant needs -dir\n"},
		{[]string{"-variant=none", "-dir=" + cards}, 2, "", "thumbnails: -variant none: there are cleanup, own, pace, cmem\n"},
		{[]string{"-unknown"}, 2, "", "thumbnails: flag provided but not defined: -unknown\n"},
		{[]string{"a", "b"}, 2, "", "thumbnails: 2 charts are given, and one can be written\n"},
	} {
		name := strings.NewReplacer(cards, "cards", empty, "empty").Replace(strings.Join(c.args, " "))
		t.Run(name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			if code := run(t.Context(), c.args, nil, &stdout, &stderr); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if !strings.HasPrefix(stdout.String(), c.stdout) || c.stdout == "" && stdout.Len() > 0 {
				t.Errorf("stdout %q, want %q", stdout.String(), c.stdout)
			}
			if !strings.HasPrefix(stderr.String(), c.stderr) || c.stderr == "" && stderr.Len() > 0 {
				t.Errorf("stderr %q, want %q", stderr.String(), c.stderr)
			}
			if strings.Count(stderr.String(), "\n") > 1 {
				t.Errorf("more than a line on stderr: %q", stderr.String())
			}
		})
	}
	settled(t)
}

// The size of the images below, of 1.4 MB each.
const width, height = 800, 600

// TestMemory has each variant make the same thumbnails, in a process of its own. No
// image is closed, and at the end, for which the process waits, all are freed. Only
// with pace are they freed in time.
func TestMemory(t *testing.T) {
	const images = 600
	const total = images * width * height * 3
	o := options{work: work{dir: t.TempDir(), images: images, width: 100, workers: 2}, every: time.Millisecond, most: 4 << 30}
	if _, err := testcard.Make(o.dir, 4, width, height); err != nil {
		t.Fatal(err)
	}
	testcall.Must(t, os.Mkdir(filepath.Join(o.dir, thumbnails), 0o777))
	for _, v := range variants {
		m, err := o.child(t.Context(), v)
		if err != nil {
			t.Fatalf("%s: %v", v.name, err)
		}
		grown := m.peak() - m.Points[0].Bytes
		t.Logf("%s: grown by %d MB of %d in %v, %d collections, %d samples, at most %d MB live, %d images live at the end",
			v.name, grown/1e6, total/1000000, m.Took.Round(time.Millisecond), m.Cycles, len(m.Points), m.Live/1e6, m.Waiting)
		if m.Images != images || m.Full {
			t.Errorf("%s: %d thumbnails, want %d; stopped: %v", v.name, m.Images, images, m.Full)
		}
		// Usually 130 to 260 MB: without a limit 64 MiB come before pace collects.
		if v.pace && grown > total/2 {
			t.Errorf("%s: resident memory has grown by %d bytes, want at most %d", v.name, grown, total/2)
		}
		if !v.pace && grown < total*3/4 {
			t.Errorf("%s: resident memory has grown by %d bytes, want most of %d: then what is pace for?", v.name, grown, total)
		}
		for i := 1; i < len(m.Points); i++ {
			if m.Points[i].At <= m.Points[i-1].At {
				t.Fatalf("%s: sample %d is of %v, the one before of %v", v.name, i, m.Points[i].At, m.Points[i-1].At)
			}
		}
		if last := m.Points[len(m.Points)-1].At; last < m.Took { // of the end, which comes later
			t.Errorf("%s: the last sample is of %v, and it took %v", v.name, last, m.Took)
		}
	}
	files, err := filepath.Glob(filepath.Join(o.dir, thumbnails, "*.jpg"))
	if err != nil || len(files) != images {
		t.Errorf("%d thumbnails on disk, want %d; error %v", len(files), images, err)
	}
	if p := goDecodes(t, files[0]); p.width != 100 || p.height != 75 {
		t.Errorf("a thumbnail of %d x %d pixels, want 100 x 75", p.width, p.height)
	}
}

func TestFullStops(t *testing.T) {
	o := options{work: work{dir: t.TempDir(), images: 1 << 20, width: 100, workers: 2}, every: time.Millisecond, most: 100 << 20}
	if _, err := testcard.Make(o.dir, 1, width, height); err != nil {
		t.Fatal(err)
	}
	testcall.Must(t, os.Mkdir(filepath.Join(o.dir, thumbnails), 0o777))
	m, err := o.child(t.Context(), variants[0])
	testcall.Must(t, err)
	if !m.Full || m.peak() < 100<<20 || m.peak() > 200<<20 {
		t.Errorf("stopped: %v, with up to %d bytes, want a little over %d", m.Full, m.peak(), 100<<20)
	}
}

// TestWorkStops ends the work early, after which all images are freed.
func TestWorkStops(t *testing.T) {
	dir := t.TempDir()
	if _, err := testcard.Make(dir, 1, 320, 240); err != nil {
		t.Fatal(err)
	}
	w := work{dir: dir, images: 1 << 20, width: 10, workers: 3}
	bindings(t, func(t *testing.T, v variant) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var enough atomic.Bool
		if _, err := w.do(ctx, v.open, &enough); err != context.Canceled {
			t.Errorf("error %v, want %v", err, context.Canceled)
		}
		// The directory of the thumbnails does not exist.
		if _, err := w.do(t.Context(), v.open, &enough); err == nil || !strings.Contains(err.Error(), "No such file") {
			t.Errorf("error %v, want one that says what is missing", err)
		}
	})
}

// TestMeasurementIsJSON: a measurement passes from the process that made it to the one
// that draws it.
func TestMeasurementIsJSON(t *testing.T) {
	dir := t.TempDir()
	if _, err := testcard.Make(dir, 1, 320, 240); err != nil {
		t.Fatal(err)
	}
	chart := filepath.Join(t.TempDir(), "chart.svg")
	var stdout, stderr strings.Builder
	if code := run(t.Context(), []string{"-n=3", "-every=1ms", "-dir=" + dir, "-variant=pace"}, nil, &stdout, &stderr); code != 0 {
		t.Fatal(stderr.String())
	}
	var m measurement
	testcall.Must(t, json.Unmarshal([]byte(stdout.String()), &m))
	if m.Images != 3 || len(m.Points) < 2 || m.peak() < 1<<20 || m.Took <= 0 {
		t.Errorf("measured %+v", m)
	}
	if code := run(t.Context(), []string{"-n=3", "-every=1ms", "-dir=" + dir, chart}, nil, &stdout, &stderr); code != 0 {
		t.Fatal(stderr.String())
	}
	svg, err := os.ReadFile(chart)
	testcall.Must(t, err)
	for _, v := range variants {
		if !strings.Contains(string(svg), ">"+v.title+"<") {
			t.Errorf("the chart does not name %q", v.title)
		}
	}
	settled(t)
}
