// Package cbodies has functions of C that leak, and others that seem to, for the tests of leaktest.CheckC and
// cmem.Benchmark, which are in modules that do not know each other. Without cgo it is empty.
package cbodies
