package result

import "testing"

func TestSections(t *testing.T) {
	var got string
	for _, s := range Sections([]Row{{Row: "a"}, {Row: "b", Section: "odd"}, {Row: "c"}, {Row: "d", Section: "off"}, {Row: "e", Section: "odd"}}) {
		got += s.Title + ":"
		for _, row := range s.Rows {
			got += row.Row
		}
		got += " "
	}
	if want := ":ac odd:be off:d "; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestShortTo(t *testing.T) {
	for _, tt := range [][3]string{
		{"cgo", "func-value", "func-value"}, {"finalizer-128", "alloc-128", "alloc"}, {"finalizer-gc-off", "manual-gc-off", "manual"},
		{"manual-object", "manual", "manual"}, {"manual-object-gc-off", "manual-gc-off", "manual-gc-off"},
		{"grow-shrink-heap", "grow-shrink-malloc", "malloc"}, {"a", "a", "a"},
	} {
		if got := ShortTo(tt[0], tt[1]); got != tt[2] {
			t.Errorf("%s beside %s is %q, want %q", tt[1], tt[0], got, tt[2])
		}
	}
}
