//go:build browser

package browser

import (
	"context"
	_ "embed"
	"encoding/json"
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

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// browsers are the names under which Chromium is installed.
var browsers = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell"}

// A tab is a page of a browser without a window.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	said     []string // on the console, by the page or by the browser about it
	requests []string
}

// startBrowser starts a browser that ends with the test, with an empty page.
func startBrowser(t *testing.T) *tab {
	t.Helper()
	program := ""
	for _, name := range browsers {
		if p, err := exec.LookPath(name); err == nil {
			program = p
			break
		}
	}
	if program == "" {
		t.Skip("no Chromium is installed; on Debian: apt-get install chromium")
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
	t.Cleanup(func() { // and waits for its end
		if err := chromedp.Cancel(ctx); err != nil {
			t.Logf("end of the browser: %v", err) // of its files, which are gone a moment later
		}
	})
	b := &tab{t: t, ctx: ctx}
	testcall.Must(t, chromedp.Listen(ctx, b.listen))
	call(b, network.Enable, network.EnableParams{})
	return b
}

// call sends a command to the browser.
func call[P, R any](b *tab, command cdp.Command[P, R], params P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, command, params); err != nil {
		b.t.Fatal(err)
	}
}

// run does something with the page.
func run[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, action)
	if err != nil {
		b.t.Fatal(err)
	}
	return value
}

// evaluate runs a script in the page, and waits for its value if that is a
// promise.
func evaluate[T any](b *tab, script string) T {
	b.t.Helper()
	return run(b, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// wait waits until an expression is true in the page. Nothing but the deadline of the tests bounds
// how long that takes.
func (b *tab) wait(what, condition string) {
	b.t.Helper()
	script := `new Promise(done => {
		const look = () => { if (` + condition + `) done(true); else setTimeout(look, 20); };
		look();
	})`
	if _, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](script, chromedp.EvalAwaitPromise)); err != nil {
		b.t.Fatalf("waiting until %s: %v", what, err)
	}
}

// frames waits until what has changed is drawn: sizes are looked at between two
// frames.
func (b *tab) frames() {
	b.t.Helper()
	evaluate[bool](b, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
}

func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		for _, arg := range e.Args {
			b.said = append(b.said, fmt.Sprintf("%s: %s%s", e.Type, arg.Value, arg.Description))
		}
	case *runtime.EventExceptionThrown:
		b.said = append(b.said, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		b.said = append(b.said, e.Entry.Text)
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

// complaints returns what the console has been told, and what the page asked
// others for.
func (b *tab) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := slices.Clone(b.said)
	for _, u := range b.requests {
		if !strings.HasPrefix(u, "file:") && !strings.HasPrefix(u, "data:") {
			list = append(list, "a request for "+u)
		}
	}
	return list
}

// hears waits until the console was told all of the words. An event may come after the answer to the
// script that has caused it.
func (b *tab) hears(words ...string) {
	b.t.Helper()
	for {
		list := strings.Join(b.complaints(), "\n")
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(list, w) }) {
			return
		}
		select {
		case <-b.ctx.Done():
			b.t.Fatalf("the browser does not complain of %q:\n%s", words, list)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// forget drops what was said until now.
func (b *tab) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said, b.requests = nil, nil
}

// openFile shows a page of a file.
func (b *tab) openFile(name string) {
	b.t.Helper()
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(name)}
	run(b, chromedp.Navigate(u.String()))
}

// A device is what a page is looked at with.
type device struct {
	name   string
	width  int
	scheme string
}

var devices = []device{
	{"phone", 390, "light"},
	{"phone-dark", 390, "dark"},
	{"desktop", 1280, "light"},
	{"desktop-dark", 1280, "dark"},
}

// become makes the tab look like a device, and waits until the page knows.
func (b *tab) become(d device) {
	b.t.Helper()
	phone, height := d.width < 500, int64(800)
	if phone {
		height = 844
	}
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: int64(d.width), Height: height, DeviceScaleFactor: 1, Mobile: phone,
	})
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: d.scheme}},
	})
	b.frames()
}

// An audit is what testdata/audit.js has found.
type audit struct {
	Problems []string
	Texts    int // lines of text that were compared
}

//go:embed testdata/audit.js
var auditJS string

func (b *tab) audit() audit {
	b.t.Helper()
	var a audit
	if err := json.Unmarshal([]byte(evaluate[string](b, auditJS)), &a); err != nil {
		b.t.Fatal(err)
	}
	return a
}

// screenshot keeps a picture of the whole page among the artifacts of the test.
func (b *tab) screenshot(name string) {
	b.t.Helper()
	yes := true
	shot, err := chromedp.Call(b.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
		CaptureBeyondViewport: &yes, OptimizeForSpeed: &yes,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.t.ArtifactDir(), name+".png"), shot.Data, 0o666); err != nil {
		b.t.Fatal(err)
	}
}
