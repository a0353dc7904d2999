package main

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// The command starts itself for each variant. In tests it is this program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "-variant=") {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestRun(t *testing.T) {
	for _, c := range []struct {
		args           []string
		code           int
		stdout, stderr string // the first part of each
	}{
		{[]string{"-n=20000", "-rounds=2"}, 0, "20000 values of 100 to 1100 bytes; medians, and least to most, of 2 rounds\n\n", ""},
		{[]string{"-n=1000", "-variant=map"}, 0, `{"Collection":`, ""},
		{[]string{"-h"}, 0, "usage: cache [flags]\n", ""},
		{[]string{"-n=x"}, 2, "", `cache: invalid value "x" for flag -n`},
		{[]string{"-n=0"}, 2, "", "cache: -n 0, -rounds 5: each is at least 1\n"},
		{[]string{"-rounds=-1"}, 2, "", "cache: -n 1000000, -rounds -1: each is at least 1\n"},
		{[]string{"-variant=none"}, 2, "", "cache: -variant none: there are map, cache, budget, nil\n"},
		{[]string{"-unknown"}, 2, "", "cache: flag provided but not defined: -unknown\n"},
		{[]string{"a"}, 2, "", "cache: \"a\": there are only flags\n"},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
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
			for _, table := range tables {
				for _, r := range table.rows {
					if len(c.args) == 2 && c.args[1] == "-rounds=2" && !strings.Contains(stdout.String(), r.title) {
						t.Errorf("stdout has no row %q", r.title)
					}
				}
			}
		})
	}
}

func TestRunIsCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr strings.Builder
	if code := run(ctx, []string{"-n=1000"}, nil, &stdout, &stderr); code != 1 || !strings.HasPrefix(stderr.String(), "cache: map: ") {
		t.Errorf("exit code %d, stderr %q", code, stderr.String())
	}
}

// TestMeasurements checks the figures that are not times.
func TestMeasurements(t *testing.T) {
	const values = 50_000
	found := map[string]measurement{}
	for _, v := range variants {
		m, err := v.measure(values)
		if err != nil {
			t.Fatalf("%s: %v", v.name, err)
		}
		text, err := json.Marshal(m)
		testcall.Must(t, err)
		var same measurement
		if err := json.Unmarshal(text, &same); err != nil || same != m {
			t.Errorf("%s: %+v is %+v as JSON; %v", v.name, m, same, err)
		}
		found[v.name] = m
	}
	// 600 bytes a value, or an index of less than 200.
	if live := found["map"].Live; live < values*600 {
		t.Errorf("with a map the Go heap has %v bytes", live)
	}
	if live := found["cache"].Live; live > values*200 {
		t.Errorf("with a cache the Go heap has %v bytes", live)
	}
	if n := found["budget"].Failed; n != 0 {
		t.Errorf("with a budget %v Mallocs failed", n)
	}
	if n := found["nil"].Failed; n < values/4 {
		t.Errorf("without one %v Mallocs failed", n)
	}
}

func TestSummary(t *testing.T) {
	r := row{value: func(m measurement) float64 { return m.Put }}
	for _, c := range []struct {
		puts []float64
		want string
	}{
		{[]float64{3.14159}, "3.14"},
		{[]float64{0, 0}, "0"},
		{[]float64{1234.5, 12.345}, "623 (12.3 to 1234)"},
		{[]float64{3, 1, 2}, "2.00 (1.00 to 3.00)"},
	} {
		var all []measurement
		for _, put := range c.puts {
			all = append(all, measurement{Put: put})
		}
		if got := r.summary(all); got != c.want {
			t.Errorf("%v: %q, want %q", c.puts, got, c.want)
		}
	}
}
