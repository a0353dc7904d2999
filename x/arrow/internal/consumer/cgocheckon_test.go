//go:build goexperiment.cgocheck2

package consumer_test

// cgocheck2 says whether Go looks at every pointer that is stored in C memory.
const cgocheck2 = true
