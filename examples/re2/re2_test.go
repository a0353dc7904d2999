//go:build !re2

package main

import (
	"strings"
	"testing"
)

func TestRunWithoutRE2SaysHowToInstall(t *testing.T) {
	var stderr strings.Builder
	if code := run(nil, nil, nil, &stderr); code != 1 || !strings.Contains(stderr.String(), "apt-get install g++ libre2-dev") {
		t.Errorf("exit code %d, and %q", code, stderr.String())
	}
}
