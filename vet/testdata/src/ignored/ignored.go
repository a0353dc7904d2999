package ignored

import "runtime"

func line() {
	runtime.SetFinalizer(new(int), func(*int) {}) //cheapvet:ignore cleanupcycle on purpose
	//cheapvet:ignore perobject,cleanupcycle on purpose
	runtime.SetFinalizer(new(int), func(*int) {})
	runtime.SetFinalizer(new(int), func(*int) {}) //cheapvet:ignore perobject another analyzer // want `int has 8 bytes`
}

// function makes the mistake twice.
//
//cheapvet:ignore cleanupcycle on purpose
func function() {
	runtime.SetFinalizer(new(int), func(*int) {})

	runtime.SetFinalizer(new(int), func(*int) {})
}

func other() {
	runtime.SetFinalizer(new(int), func(*int) {}) // want `int has 8 bytes`
}
