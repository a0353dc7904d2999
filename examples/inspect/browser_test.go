//go:build browser

package main

import (
	"bytes"
	"flag"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

var update = flag.Bool("update", false, "write docs/inspect.png, the picture of docs/memory.md")

// TestScreenshot takes a picture of the page, for docs/memory.md if -update is set.
func TestScreenshot(t *testing.T) {
	program := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if p, err := exec.LookPath(name); err == nil {
			program = p
			break
		}
	}
	if program == "" {
		t.Skip("no Chromium is installed; on Debian: apt-get install chromium")
	}
	page := start(t)
	if *update { // the chart has what was asked before
		for range 40 {
			get(t, page+"all.json")
			time.Sleep(time.Second)
		}
	}
	const width, height = 1280, 800
	file := filepath.Join(t.TempDir(), "inspect.png")
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir="+t.TempDir(), "--virtual-time-budget=3000",
		fmt.Sprintf("--window-size=%d,%d", width, height), "--screenshot="+file, page)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	picture, err := os.ReadFile(file)
	testcall.Must(t, err)
	image, err := png.Decode(bytes.NewReader(picture))
	testcall.Must(t, err)
	if b := image.Bounds(); b.Dx() != width || b.Dy() != height {
		t.Errorf("the picture has %v", b)
	}
	area := 0 // pixels in the color of heaps
	for y := range height {
		for x := range width {
			if r, g, b, _ := image.At(x, y).RGBA(); r>>8 == 0x6a && g>>8 == 0x51 && b>>8 == 0xa3 {
				area++
			}
		}
	}
	if area < 1000 {
		t.Errorf("%d pixels have the color of heaps; the bar and the chart are not there", area)
	}
	if len(picture) > 256<<10 {
		t.Errorf("the picture has %d bytes; README.md should have at most 256 KiB", len(picture))
	}
	if *update {
		testcall.Must(t, os.WriteFile("../../docs/inspect.png", picture, 0o666))
	}
}
