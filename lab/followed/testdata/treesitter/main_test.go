package main

import (
	"os"
	"reflect"
	"testing"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// TestFollowed compares what both loops find.
func TestFollowed(t *testing.T) {
	source, err := os.ReadFile("main.go")
	testcall.Must(t, err)
	before, behind := run(source, 2, count), run(source, 2, countRounds)
	if !reflect.DeepEqual(before, behind) || len(before.kinds) < 10 {
		t.Errorf("%+v before, %+v behind", before, behind)
	}
}
