// Where is a server whose memory grows: see README.md.
//
//	go run . [-addr localhost:6060] [-fix] [-rate 2] [-growth 10s] [-seconds 0]
//
// It asks itself. One of its queries has a mistake: see guestbook.go. The page is at
// http://localhost:6060/debug/cheap/.
package main

import (
	"context"
	"os"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}
