//go:build !libgit2

package main

import (
	"strings"
	"testing"
)

func TestRunWithoutLibgit2SaysHowToInstall(t *testing.T) {
	var stderr strings.Builder
	if code := run(t.Context(), nil, nil, nil, &stderr); code != 1 || !strings.Contains(stderr.String(), "apt-get install libgit2-dev") {
		t.Errorf("exit code %d, and %q", code, stderr.String())
	}
}
