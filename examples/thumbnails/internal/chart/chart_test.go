package chart

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// A drawing has the parts of an SVG file that the tests check.
type drawing struct {
	texts []string
	lines map[string][][2]float64 // the longest line of each colour
}

var (
	stroke = regexp.MustCompile(`stroke:(#[0-9A-F]{6})`)
	node   = regexp.MustCompile(`[ML](-?[\d.e+-]+),(-?[\d.e+-]+)`)
)

func parse(t *testing.T, r io.Reader) drawing {
	t.Helper()
	d := drawing{lines: map[string][][2]float64{}}
	var inText bool
	for x := xml.NewDecoder(r); ; {
		token, err := x.Token()
		if errors.Is(err, io.EOF) {
			return d
		} else if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			inText = e.Name.Local == "text"
			if e.Name.Local != "path" {
				break
			}
			var colour string
			var line [][2]float64
			for _, a := range e.Attr {
				switch a.Name.Local {
				case "style":
					if m := stroke.FindStringSubmatch(a.Value); m != nil {
						colour = m[1]
					}
				case "d":
					for _, m := range node.FindAllStringSubmatch(a.Value, -1) {
						x, errX := strconv.ParseFloat(m[1], 64)
						y, errY := strconv.ParseFloat(m[2], 64)
						if errX != nil || errY != nil {
							t.Fatalf("a path through %q", m[0])
						}
						line = append(line, [2]float64{x, y})
					}
				}
			}
			if len(line) > len(d.lines[colour]) {
				d.lines[colour] = line
			}
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				d.texts = append(d.texts, string(e))
			}
		}
	}
}

// curve returns the line that was drawn in the style of a curve.
func (d drawing) curve(i int) [][2]float64 {
	c := styles[i].color
	return d.lines[fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B)]
}

// staircase returns a curve that rises by the same number of bytes at each point.
func staircase(name string, n int, step int64) Curve {
	c := Curve{Name: name}
	for i := range n {
		c.Points = append(c.Points, Point{time.Duration(i) * time.Second, int64(i) * step})
	}
	return c
}

func TestDraw(t *testing.T) {
	const mib = 1 << 20
	curves := []Curve{staircase("steep", 40, 4*mib), staircase("slow", 60, mib), staircase("flat", 50, 0)}
	var svg bytes.Buffer
	testcall.Must(t, Draw(&svg, "three stairs", Top, curves))
	d := parse(t, &svg)
	for _, text := range []string{"three stairs", "time (s)", "resident memory (MiB)", "steep", "slow", "flat"} {
		if !slices.Contains(d.texts, text) {
			t.Errorf("the chart does not say %q: %q", text, d.texts)
		}
	}
	for i, c := range curves {
		line := d.curve(i)
		if len(line) != len(c.Points) {
			t.Fatalf("%s has %d points, want %d", c.Name, len(line), len(c.Points))
		}
		// All steps are equal.
		n := len(line) - 1
		dx, dy := (line[n][0]-line[0][0])/float64(n), (line[n][1]-line[0][1])/float64(n)
		for k, at := range line {
			x, y := line[0][0]+float64(k)*dx, line[0][1]+float64(k)*dy
			if max(x-at[0], at[0]-x, y-at[1], at[1]-y) > 0.1 {
				t.Fatalf("point %d of %s is at %v, want %v", k, c.Name, at, [2]float64{x, y})
			}
		}
	}
	// All curves have one scale: each second is as wide as another, and four times
	// the bytes are four times as high.
	steep, slow, flat := d.curve(0), d.curve(1), d.curve(2)
	if w := (slow[59][0] - slow[0][0]) / (steep[39][0] - steep[0][0]) * 39 / 59; w < 0.99 || w > 1.01 {
		t.Errorf("a second of one curve is %.3f times as wide as that of another", w)
	}
	if h := (steep[39][1] - steep[0][1]) / (slow[39][1] - slow[0][1]); h < 3.96 || h > 4.04 {
		t.Errorf("four times the bytes are %.3f times as high", h)
	}
	if flat[0][1] != flat[49][1] {
		t.Errorf("a flat curve goes from %v to %v", flat[0], flat[49])
	}
}

// TestDrawNothing draws a process that uses no memory, so that the axis has no length.
func TestDrawNothing(t *testing.T) {
	var svg bytes.Buffer
	testcall.Must(t, Draw(&svg, "", Top, []Curve{staircase("flat", 5, 0)}))
	if n := len(parse(t, &svg).curve(0)); n != 5 {
		t.Errorf("the curve has %d points, want 5", n)
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{0, 1, "0 0.2 0.4 0.6 0.8 1"},
		{0, 8, "0 1 2 3 4 5 6 7 8"},
		{0, 8.1, "0 2 4 6 8"},
		{0, 2345, "0 500 1000 1500 2000"},
		{3, 21, "5 10 15 20"},
		{0, 0.05, "0 0.01 0.02 0.03 0.04 0.05"},
		{-1, 2, "-1 -0.5 0 0.5 1 1.5 2"},
	} {
		var got []string
		for _, mark := range (ticks{}).Ticks(c.low, c.high) {
			got = append(got, mark.Label)
			if v, err := strconv.ParseFloat(mark.Label, 64); err != nil || math.Abs(v-mark.Value) > 1e-9 {
				t.Errorf("the mark at %v says %q", mark.Value, mark.Label)
			}
		}
		if s := strings.Join(got, " "); s != c.want {
			t.Errorf("from %v to %v: %s, want %s", c.low, c.high, s, c.want)
		}
	}
}

func TestDrawRefuses(t *testing.T) {
	ok := staircase("ok", 2, 1)
	for _, n := range []int{0, 5} {
		if err := Draw(io.Discard, "", Top, slices.Repeat([]Curve{ok}, n)); err == nil || !strings.Contains(err.Error(), "1 to 4") {
			t.Errorf("%d curves: error %v", n, err)
		}
	}
	for n := range 2 {
		if err := Draw(io.Discard, "", Top, []Curve{ok, staircase("short", n, 1)}); !errors.Is(err, ErrPoints) {
			t.Errorf("a curve of %d points: error %v, want %v", n, err, ErrPoints)
		}
	}
}

// TestChartOfTheDocuments checks that Draw has made the chart in the documents, of a
// run with hundreds of samples.
func TestChartOfTheDocuments(t *testing.T) {
	f, err := os.Open(filepath.Join("..", "..", "..", "..", "docs", "thumbnails.svg"))
	testcall.Must(t, err)
	defer f.Close()
	d := parse(t, f)
	for i := range Curves {
		if n := len(d.curve(i)); n < 100 {
			t.Errorf("curve %d has %d points, want 100 or more", i, n)
		}
	}
	for _, text := range []string{"time (s)", "resident memory (MiB)", "runtime.AddCleanup", "own", "own and pace", "AddCleanup, cmem and pace"} {
		if !slices.Contains(d.texts, text) {
			t.Errorf("the chart does not say %q: %q", text, d.texts)
		}
	}
}
