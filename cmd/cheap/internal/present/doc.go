// Package present writes the reports of `cheap bench` and `cheap replay`: as text
// for people, as JSON, in Go's benchmark format, and two reports side by side.
package present
