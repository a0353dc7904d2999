// Package draw has a small drawing library in C, in the style of OpenGL, which counts and
// checks its calls, and draws frames of thousands of them by cgo and by lists of calls.
package draw
