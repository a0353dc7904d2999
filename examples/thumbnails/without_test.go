//go:build !linux || !cgo || !libjpeg

package main

import (
	"strings"
	"testing"
)

func TestRunWithoutLibjpegSaysHowToInstall(t *testing.T) {
	var stderr strings.Builder
	if code := run(t.Context(), nil, nil, nil, &stderr); code != 1 || !strings.Contains(stderr.String(), "apt-get install libjpeg62-turbo-dev") {
		t.Errorf("exit code %d, and %q", code, stderr.String())
	}
}
