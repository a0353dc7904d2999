// Package cbodies has functions of C that leak, and others that seem to, for the tests of leaktest.CheckC and
// leaktest.Benchmark with package cmem: their modules do not know each other. Without cgo it is empty.
package cbodies
