//go:build goexperiment.cgocheck2

package consumer_test

// cgocheck2 is true if Go checks every pointer that is stored in C memory.
const cgocheck2 = true
