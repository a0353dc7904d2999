package leaky

import "runtime"

func finalizer() { runtime.SetFinalizer(new(int), func(*int) {}) }
