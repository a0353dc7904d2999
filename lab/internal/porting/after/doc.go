// Package after binds the library on this module.
package after
