//go:build browser

package browser

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// recorded is a program of C. It lasts for some moments of a recording.
const recorded = `
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *keep[4];
__attribute__((noinline)) void *early(void) { return memset(malloc(1000000), 1, 1000000); }
__attribute__((noinline)) void *late(void) { return memset(malloc(500000), 1, 500000); }
__attribute__((noinline)) void *brief(void) { return memset(malloc(300000), 1, 300000); }

int main(void) {
	keep[0] = early();
	usleep(800000);
	for (int i = 1; i < 4; i++) keep[i] = late();
	for (int i = 0; i < 10; i++) free(brief());
	usleep(800000);
	return 0;
}
`

// TestRecord opens the page of a recording: what it says of the end, of what was freed, and of what grew between two
// moments are the numbers of the program. It is used by the keys, too.
func TestRecord(t *testing.T) {
	b := startBrowser(t)
	folder := t.TempDir()
	testcall.Must(t, os.WriteFile(filepath.Join(folder, "prog.c"), []byte(recorded), 0o666))
	build := exec.Command("cc", "-g", "-O0", "-o", "prog", "prog.c")
	build.Dir = folder
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	runCheap(t, folder, "record", "-rate=1", "-o=report.html", "./prog")
	for _, d := range devices {
		b.openFile(filepath.Join(folder, "report.html"))
		b.become(d)
		b.frames()
		for _, p := range b.audit().Problems {
			if !strings.HasSuffix(p, "… is cut") { // a name of the flame graph
				t.Errorf("%s: %s", d.name, p)
			}
		}
		b.screenshot("record-" + d.name)
	}
	text := func(id string) string {
		return evaluate[string](b, `document.getElementById('`+id+`').textContent`)
	}
	set := func(id, value, event string) {
		evaluate[bool](b, fmt.Sprintf(`(() => {
			const at = document.getElementById('%s');
			at.value = %s;
			at.dispatchEvent(new Event('%s'));
			return true;
		})()`, id, value, event))
	}
	for what, want := range map[string]string{
		"end": "2.38 MiB in use at the end.", "temporary": "2.86 MiB allocated and freed again.", "allocated": "5.25 MiB allocated since the program began.",
	} {
		if set("what", "'"+what+"'", "change"); text("about") != want {
			t.Errorf("%s: %q, want %q", what, text("about"), want)
		}
	}
	set("what", "'end'", "change")
	if set("find", "'LATE'", "input"); text("found") != "Found: 1.43 MiB, 60%, in 1 stack." {
		t.Errorf("found: %q", text("found"))
	}
	set("find", "''", "input")
	set("group", "'l'", "change")
	if got := text("sums"); got != "2.38 MiB100%prog" {
		t.Errorf("by library: %q", got)
	}
	click := func(id string) {
		evaluate[bool](b, `document.getElementById('`+id+`').click(), true`)
	}
	rows := func() string {
		return evaluate[string](b, `[...document.getElementById('sums').rows].map(r => [...r.cells].map(c => c.textContent).join(' ')).join('; ')`)
	}
	set("group", "'inverted'", "change")
	if got := evaluate[string](b, `[...document.querySelectorAll('#flame svg text')].slice(0, 3).map(t => t.textContent).join(' ')`); got != "all late main" {
		t.Errorf("the inverted graph begins with %q", got)
	}
	set("group", "''", "change")
	if got, want := rows(), "1.43 MiB 1.43 MiB late; 977 KiB 977 KiB early"; !strings.HasPrefix(got, want) || strings.Contains(got, " main") {
		t.Errorf("by what functions have allocated themselves: %q, want %q", got, want)
	}
	click("sort-total")
	if got, want := rows(), " 2.38 MiB main; 1.43 MiB 1.43 MiB late; 977 KiB 977 KiB early"; !strings.Contains(got, want) || evaluate[string](b, `document.querySelector('[aria-sort=descending]').textContent`) != "total" {
		t.Errorf("by what they have with what they call: %q, want %q", got, want)
	}
	click("sort-own")
	for _, d := range []device{devices[0], devices[2]} {
		b.become(d)
		if wide := evaluate[bool](b, `document.documentElement.scrollWidth > innerWidth`); wide {
			t.Errorf("%s: the page is wider than the window", d.name)
		}
	}
	evaluate[bool](b, `document.querySelector('[data-find="late"]').click(), true`)
	if text("found") != "Found: 1.43 MiB, 60%, in 1 stack." {
		t.Errorf("the link of a place has found: %q", text("found"))
	}
	set("find", "''", "input")
	if got := evaluate[string](b, `[...document.querySelectorAll('[aria-labelledby=places] tbody code')].map(c => c.textContent).join('; ')`); got != "late; early" {
		t.Errorf("the places are %q", got)
	}
	// From a moment before the second half on, only late has grown.
	set("from", `JSON.parse(document.getElementById('data').textContent).times.findLastIndex(t => t < 0.7)`, "input")
	if got := text("about"); !strings.HasSuffix(got, " these stacks have grown by 1.43 MiB; others are smaller by 0 bytes.") {
		t.Errorf("between: %q", got)
	}
	if got := text("between"); !strings.Contains(got, " 977 KiB of C were in use, at ") || !strings.HasSuffix(got, " 2.38 MiB.") {
		t.Errorf("the two moments: %q", got)
	}
	const words = `[...document.querySelectorAll('#flame svg text')].map(t => t.textContent).join(' ')`
	if got := evaluate[string](b, words); !strings.Contains(got, "late") || strings.Contains(got, "early") {
		t.Errorf("the flame graph has the words %q", got)
	}
	keys := func(keys ...string) string {
		for _, key := range keys {
			evaluate[bool](b, `document.getElementById('flame').dispatchEvent(new KeyboardEvent('keydown', {key: '`+key+`'}))`)
		}
		return text("flame-text")
	}
	if got := keys("ArrowDown", "Enter"); !strings.HasSuffix(got, ", 1.43 MiB, 100%") || evaluate[bool](b, `document.getElementById('flame-reset').hidden`) {
		t.Errorf("after two keys: %q", got)
	}
	if got, want := text("sums-title")+": "+rows(), ": 1.43 MiB 1.43 MiB late"; !strings.HasPrefix(got, "By function, in ") || !strings.HasSuffix(got, want) {
		t.Errorf("the table of what is enlarged is %q, want %q", got, want)
	}
	if got := keys("Escape"); !strings.HasPrefix(got, "The width of a function is its bytes.") {
		t.Errorf("after Escape: %q", got)
	}
	if list := b.complaints(); len(list) > 0 {
		t.Errorf("the browser complains:\n%s", strings.Join(list, "\n"))
	}
}
