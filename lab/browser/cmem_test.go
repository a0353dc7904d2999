//go:build browser

package browser

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/cheapgo/cheap/inspect"
	"github.com/cheapgo/cheap/internal/watch/census"
	"github.com/cheapgo/cheap/internal/watch/resident"
)

const manyName = "libmany-and-very-long <i>.so.6.3.1"

// A cHeap is a C heap of which one stack grows.
type cHeap struct {
	census.CHeap
	off string
	two bool // stacks, which differ in a function of C
}

func (h *cHeap) Off() string        { return h.off }
func (*cHeap) Read() census.CCounts { return census.CCounts{Mallocs: 1234, Live: 7 << 20} }

func (*cHeap) Libraries(list []census.CLibrary) []census.CLibrary {
	return append(list, census.CLibrary{Name: "libsmall.so", Live: 1 << 10}, census.CLibrary{Name: manyName, Live: 7 << 20, Blocks: 3, Allocs: 8 << 20})
}

func (h *cHeap) Watch(int) func() (steady, lately []census.CSuspect) {
	return func() (_, _ []census.CSuspect) {
		stack := "inner_%d\n\t/lib/libmany.so\nlib_malloc\n\t/lib/libmany.so\nmain.leak\n\t/src/main.go:7\nmain.main\n\t/src/main.go:9\n"
		if h.two {
			return []census.CSuspect{
				{Library: manyName, Live: 7 << 20, Grown: 6 << 20, Error: 1 << 20, Stack: "main.leak\n\t/src/main.go:7\nby way of\n" + fmt.Sprintf(stack, 1)},
				{Library: manyName, Live: 2 << 20, Grown: 1 << 20, Error: 1 << 20, Stack: "main.leak\n\t/src/main.go:7\nby way of\n" + fmt.Sprintf(stack, 2)},
			}, nil
		}
		return []census.CSuspect{{
			Library: manyName, Live: 7 << 20, Grown: 6 << 20, Error: 1 << 20,
			Stack: "libmany.so+0x123\n\t/lib/libmany.so\nmany_open\n\t/lib/libmany.so\nmain._Cfunc_many_open\n\t_cgo_gotypes.go:1\nmain.leak\n\t/src/main.go:7\nmain.main\n\t/src/main.go:9\n",
		}}, nil
	}
}

// TestInspectCmem looks at the page of a program with a C heap, of which one stack grows, and then
// at that of a program in which module cmem does nothing. Module cmem itself is not in this
// program: it would count what the tests allocate.
func TestInspectCmem(t *testing.T) {
	b := startBrowser(t)
	heap := &cHeap{}
	defer census.SetCHeap(census.SetCHeap(heap))
	server := httptest.NewServer(inspect.Handler(inspect.Options{Title: "with C"}))
	defer server.Close()
	open := func(s *httptest.Server) {
		t.Helper()
		run(b, chromedp.Navigate(s.URL+"/debug/cheap/"))
		b.wait("the page shows the stacks that grow", `Number(document.body.dataset.growth || 0) > 0`)
	}
	text := func(table string) string {
		return evaluate[string](b, `[...document.querySelector('[data-table=`+table+`]').tBodies[0].rows].map(r => [...r.cells].map(c => c.innerText).join('|')).join('\n')`)
	}
	open(server)
	for table, want := range map[string]string{
		"cmem":      "mallocs|1,234|",
		"libraries": manyName + "||7.00 MiB|3|8.00 MiB\nlibsmall.so||1.00 KiB|0|0",
		"growth":    manyName + "|7 MiB|6 MiB|1 MiB|many_open ← main.leak ← main.main",
	} {
		if got := text(table); !strings.Contains(got, want) {
			t.Errorf("the table %s has\n%s\nwant\n%s", table, got, want)
		}
	}
	if got := evaluate[string](b, `document.querySelector('#largest li').innerText`); !strings.HasPrefix(got, "main.leak main.go:7") || !strings.Contains(got, "6.00 MiB ± 1.00 MiB more in") {
		t.Errorf("the largest suspect is %q", got)
	}
	evaluate[bool](b, `(document.querySelector('[data-table=growth] details').open = true)`)
	for _, d := range devices {
		b.become(d)
		b.screenshot("cmem-" + d.name)
		if wide := evaluate[int](b, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
			t.Errorf("%s: the page is %d pixels wider than the window", d.name, wide)
		}
	}

	heap.two = true
	defer func(was *resident.Watcher) { resident.Process = was }(resident.Process)
	resident.Process = new(resident.Watcher)
	second := httptest.NewServer(inspect.Handler(inspect.Options{Title: "with two stacks"}))
	defer second.Close()
	open(second)
	if got, want := evaluate[string](b, `[...document.querySelectorAll('[data-table=growth] summary')].map(e => e.textContent).join('; ')`), "main.leak ← inner_1; main.leak ← inner_2"; got != want {
		t.Errorf("two stacks of a line are %q, want %q", got, want)
	}
	if got := evaluate[string](b, `[...document.querySelectorAll('#largest li')].map(e => e.textContent).join('; ')`); !strings.HasPrefix(got, "main.leak main.go:7") || !strings.Contains(got, "7.00 MiB ± 1.41 MiB more in") || strings.Contains(got, "; ") {
		t.Errorf("the largest suspects are %q, want one line", got)
	}

	heap.off = "there is a reason"
	open(server)
	for _, section := range []string{"cmem", "libraries", "growth"} {
		got := evaluate[string](b, `document.querySelector('#`+section+` .key').innerText`)
		if want := "Module cmem does nothing: there is a reason."; got != want {
			t.Errorf("the section %s says %q, want %q", section, got, want)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, said := range b.said {
		t.Errorf("the console was told: %s", said)
	}
}
