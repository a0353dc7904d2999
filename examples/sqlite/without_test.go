//go:build !sqlite3

package main

import (
	"strings"
	"testing"
)

func TestRunWithoutSQLiteSaysHowToInstall(t *testing.T) {
	var stderr strings.Builder
	if code := run(t.Context(), nil, nil, nil, &stderr); code != 1 || !strings.Contains(stderr.String(), "apt-get install libsqlite3-dev") {
		t.Errorf("exit code %d, and %q", code, stderr.String())
	}
}
