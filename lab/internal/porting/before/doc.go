// Package before binds the library by the means of Go, and of the packages that
// this module replaces.
package before
