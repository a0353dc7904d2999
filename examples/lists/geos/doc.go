// Package geos reads the coordinates of points of GEOS with a cgo call for each, and with
// lists of calls. It is to be built with -tags=geos.
package geos
