// Package mesa draws frames of thousands of OpenGL calls with Mesa's software renderer, by cgo
// and by lists of calls. It is to be built with -tags=osmesa.
package mesa
