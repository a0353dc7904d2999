//go:build browser

package explain

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// TestPageInBrowser opens the page, enlarges a function and goes back. The page must not
// complain, and must not ask for anything.
func TestPageInBrowser(t *testing.T) {
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell"} {
		if p, err := exec.LookPath(name); err == nil {
			program = p
			break
		}
	}
	if program == "" {
		t.Skip("no Chromium is installed; on Debian: apt-get install chromium")
	}
	file := filepath.Join(t.TempDir(), "report.html")
	var b strings.Builder
	if err := pageReport().Page(&b, ""); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	// The context of the test ends before the browser can be told to end.
	ctx, cancel := context.WithCancel(context.Background())
	if end, ok := t.Deadline(); ok {
		ctx, cancel = context.WithDeadline(ctx, end.Add(-10*time.Second)) // to say what was waited for
	}
	t.Cleanup(cancel)
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(program),
		chromedp.NoSandbox,                   // which root must not have
		chromedp.WSURLReadTimeout(time.Hour), // ctx ends before
	)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Logf("end of the browser: %v", err) // of its files, which are gone a moment later
		}
	})
	var mu sync.Mutex
	var said []string
	err := chromedp.Listen(ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			said = append(said, fmt.Sprint(e.Type))
		case *runtime.EventExceptionThrown:
			said = append(said, e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			said = append(said, e.Entry.Text)
		case *network.EventRequestWillBeSent:
			if u := e.Request.URL; !strings.HasPrefix(u, "file:") && !strings.HasPrefix(u, "data:") {
				said = append(said, "a request for "+u)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(file)}
	if _, err := chromedp.Run(ctx, chromedp.Navigate(u.String())); err != nil {
		t.Fatal(err)
	}
	evaluate := func(script string) string {
		t.Helper()
		text, err := chromedp.Run(ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	const words = `[...document.querySelectorAll('#flame svg text')].map(t => t.textContent).join(' ')`
	if got := evaluate(words); !strings.Contains(got, "all") || !strings.Contains(got, "C.work") || !strings.Contains(got, "main.f") {
		t.Errorf("the flame graph has the words %q", got)
	}
	const click = `(() => {
		const text = [...document.querySelectorAll('#flame svg text')].find(t => t.textContent === 'main.f');
		text.scrollIntoView({block: 'center'});
		const r = text.getBoundingClientRect();
		for (const type of ['mousemove', 'mousedown', 'mouseup', 'click']) {
			document.elementFromPoint(r.x + 2, r.y + 2).dispatchEvent(new MouseEvent(type,
				{bubbles: true, clientX: r.x + 2, clientY: r.y + 2, view: window}));
		}
		return String(document.getElementById('flame-reset').hidden) + ' ' + document.getElementById('flame-text').textContent;
	})()`
	if got := evaluate(click); got != "false main.f, 64% of the processor time" {
		t.Errorf("after a click: %q", got)
	}
	// Its name is main.object, of which there is as much as the fonts of the machine leave room for.
	if got := evaluate(words); strings.Contains(got, "main.o") {
		t.Errorf("the enlarged graph has the words %q", got)
	}
	if got := evaluate(`document.getElementById('flame-reset').click(), ` + words); !strings.Contains(got, "main.o") {
		t.Errorf("the whole graph has the words %q", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(said) > 0 {
		t.Errorf("the page complains: %q", said)
	}
}
