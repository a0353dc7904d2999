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
