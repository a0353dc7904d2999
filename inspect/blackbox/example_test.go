package blackbox_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/cheapgo/cheap/inspect/blackbox"
)

func Example() {
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	file := filepath.Join(folder, "box") // in a container on a volume that stays

	box, err := blackbox.Start(blackbox.Options{File: file})
	if err != nil {
		log.Fatal(err)
	}
	if before := box.Previous(); before != nil { // the process before was killed, or has crashed
		fmt.Println(before.Last.Line())
	}

	// The program does its work, and is not killed.

	if err := box.Stop(); err != nil {
		log.Fatal(err)
	}
	report, err := blackbox.ReadReport(file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.State, report.Last.Verdict != "")
	// Output: stopped true
}
