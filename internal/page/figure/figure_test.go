package figure

import (
	"math"
	"testing"
)

func TestDuration(t *testing.T) {
	for ns, want := range map[float64]string{
		0: "0 ns", 0.0249: "0.0249 ns", 0.2714: "0.271 ns", 0.99951: "1.00 ns", 9.996: "10.0 ns", 52.94: "52.9 ns",
		99.96: "100 ns", 676.9: "677 ns", 999.6: "1000 ns", 3111.4: "3111 ns", 9999.4: "9999 ns",
		9999.6: "10.0 µs", 181_234: "181 µs", 999_600: "1.00 ms", 71_234_567: "71.2 ms", 1.5e9: "1.50 s",
		3.6e12: "3600 s", math.Inf(1): "–", math.NaN(): "–",
	} {
		if got := Duration(ns); got != want {
			t.Errorf("%v ns is written %q, want %q", ns, got, want)
		}
	}
}

func TestOthers(t *testing.T) {
	for _, c := range []struct {
		kind  string
		write func(float64) string
		want  map[float64]string
	}{
		{"ratio", Times, map[float64]string{
			0.0432: "0.043×", 0.0996: "0.10×", 0.5: "0.50×", 9.994: "9.99×", 9.996: "10.0×", 312.4: "312×", 1234.5: "1234×",
			math.Inf(1): "–", math.NaN(): "–",
		}},
		{"part", Percent, map[float64]string{0: "0.0%", 0.0123: "1.2%", 0.0994: "9.9%", 0.0996: "10%", 1: "100%", 2.5: "250%", 12: ">999%"}},
		{"count", Count, map[float64]string{0: "0", 0.0001: "0", 0.02: "0.02", 1: "1", 1.004: "1", 96.4: "96.40", 136.4: "136", 1048576.4: "1048576"}},
		{"published figure", Exact, map[float64]string{0.0249: "0.0249", 40: "40", 676.9: "676.9", 1058: "1058"}},
		{"number", func(x float64) string { return Thousands(int(x)) }, map[float64]string{0: "0", 999: "999", 1000: "1,000", 1808514: "1,808,514"}},
		{"number of cores", func(x float64) string { return Plural(int(x), "core") }, map[float64]string{0: "0 cores", 1: "1 core", 1024: "1,024 cores"}},
	} {
		for x, want := range c.want {
			if got := c.write(x); got != want {
				t.Errorf("the %s %v is written %q, want %q", c.kind, x, got, want)
			}
		}
	}
}

func TestRound(t *testing.T) {
	for _, c := range []struct {
		x      float64
		digits int
		want   float64
	}{
		{71_234_567.89, 7, 71_234_570}, {0.12345678, 7, 0.1234568}, {9.996, 3, 10}, {0, 3, 0},
		{math.MaxFloat64, 3, math.MaxFloat64}, // 1.80e308 does not exist
	} {
		if got := Round(c.x, c.digits); got != c.want {
			t.Errorf("%v is rounded to %v, want %v", c.x, got, c.want)
		}
	}
}

func TestPrintable(t *testing.T) {
	if got := Printable("größe 1\t\x1b[2J\n"); got != "größe 1??[2J?" {
		t.Errorf("Printable gives %q", got)
	}
}
