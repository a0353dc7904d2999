package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

func TestRun(t *testing.T) {
	want, err := os.ReadFile("../../internal/cxxheader/cheap.hpp")
	testcall.Must(t, err)
	t.Chdir(t.TempDir())
	for range 2 { // an old copy is replaced
		var stderr strings.Builder
		if code := run(nil, &stderr); code != 0 || stderr.Len() > 0 {
			t.Fatalf("exit code %d, and %q", code, stderr.String())
		}
		if got, err := os.ReadFile("cheap.hpp"); err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes are written, want the %d of the header; %v", len(got), len(want), err)
		}
		testcall.Must(t, os.WriteFile("cheap.hpp", []byte("old"), 0o666))
	}
	var stderr strings.Builder
	if code := run([]string{"-h"}, &stderr); code != 2 || !strings.HasPrefix(stderr.String(), "usage: ") {
		t.Errorf("exit code %d for an argument, and %q", code, stderr.String())
	}
	t.Chdir(t.TempDir())
	testcall.Must(t, os.Mkdir("cheap.hpp", 0o777))
	if code := run(nil, &stderr); code != 1 || !strings.Contains(stderr.String(), "cxx: open cheap.hpp") {
		t.Errorf("exit code %d where it cannot write, and %q", code, stderr.String())
	}
}
