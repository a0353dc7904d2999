package main

import (
	"os"
	"testing"
)

// TestGenerated fails when table.go is not what gen writes.
func TestGenerated(t *testing.T) {
	got, err := table()
	if err != nil {
		t.Fatal(err)
	}
	is, err := os.ReadFile("../table.go")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(is) {
		t.Error("table.go is stale: run go generate ./internal/mem/sizeclass")
	}
}
