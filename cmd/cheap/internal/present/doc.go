// Package present writes what `cheap bench` has measured: as text for people, as
// JSON, in Go's benchmark format, and two reports side by side.
package present
