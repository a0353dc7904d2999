//cheapvet:ignore cleanupcycle all of this is on purpose

package ignoredfile

import "runtime"

func f() {
	runtime.SetFinalizer(new(int), func(*int) {})
}
