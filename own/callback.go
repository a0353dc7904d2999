package own

import (
	"unsafe"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/own/internal/callback"
)

// A Callback is a Go function, or another value, that C calls by a number: the void * that C
// passes on as user data. It is a field of the binding's type, beside the Handle:
//
//	type Button struct {
//		h       own.Handle[*C.button]
//		clicked own.Callback[func()]
//	}
//
// Only this field keeps the function. C has a weak reference. If the program forgets the
// Button, the function falls silent, although C may still have the button, in a window for
// example, and may call it:
//
//	dialog.Add(button)              // the dialog of C keeps the button of C
//	button.OnClick(func() { ... })  // and Go forgets the Button: no click arrives any more
//
// The same is true if only a copy of the Handle is left. [Callbacks.Hold] is the remedy where C
// keeps objects that Go forgets. Where Go keeps what it waits for, as a connection or a parser,
// none is needed.
//
// In return nothing leaks: the function may refer to the Button, and functions of several
// Buttons to each other. Such a cycle is collected as any other, and then the button of C is
// released. While C calls a function it is reachable, so one that C calls without a pause may
// outlive many collections. A function that C keeps by a cgo.Handle, or by a map of the binding,
// keeps its Button for ever.
//
// The zero value is ready for [Callback.Set]. A Callback must not be copied before the first
// Set; go vet reports each copy. Methods may be called from any goroutine, also while C calls.
type Callback[T any] struct {
	_     [0]func(T) // no conversion to a Callback of another type
	place callback.Place
}

// Callbacks are the callbacks that C calls by one exported function. They are a package variable
// of the binding, beside that function:
//
//	var clicks = own.NewCallbacks("Button.clicked", func() {})
//
//	//export goClicked
//	func goClicked(data unsafe.Pointer) {
//		clicks.Call(data, func(f func()) { f() })
//	}
//
// Callbacks have no Close, because they hold nothing that has an end of its own: each [Callback]
// ends by itself, and C may call for one that has ended as long as the program runs. Methods may be
// called from any goroutine.
type Callbacks[T any] struct {
	kind  callback.Kind
	ended T
}

// NewCallbacks returns Callbacks with a name for messages. C gets ended in place of a callback
// that has ended; see [Callbacks.Call]. It should do nothing, and return what lets C go on.
func NewCallbacks[T any](name string, ended T) *Callbacks[T] {
	return &Callbacks[T]{callback.Kind{Name: name}, ended}
}

// CallbackStats are counts of [Callbacks].
type CallbackStats struct {
	Live  int64 // callbacks that are set, and not found unreachable by a collection that has ended
	Held  int64 // of these, callbacks that Hold keeps
	Ended int64 // calls of C that got the default, because the callback had ended
}

// Stats returns the counts. It takes about 10 ns for each callback of the program.
func (k *Callbacks[T]) Stats() CallbackStats {
	live, held := k.kind.Count()
	return CallbackStats{int64(live), int64(held), k.kind.Ended()}
}

// Call calls f with the value of the callback that C names by data. An exported function calls
// it:
//
//	//export goProgress
//	func goProgress(data unsafe.Pointer) (stop C.int) {
//		progress.Call(data, func(f func() bool) {
//			if f() {
//				stop = 1
//			}
//		})
//		return stop
//	}
//
// The call is a [Handle.Use] of the callback's owner: the resource is not released, and not
// found unreachable, before f returns, even if f or another goroutine closes the owner. In a pool
// with Options.Unshared nobody may close it before f returns.
//
// If the callback has ended, f gets the default of [NewCallbacks] instead, and the call is
// counted. A callback has ended from the moment when its owner is closed, disowned or found
// unreachable, so before the release function begins, and after [Callback.Clear]. A call that
// has begun before that goes on: its function may still run when Close or Clear returns.
//
// A panic of f passes through the functions of C, which do not go on: the caller may recover from
// it, but the object of C may be fit for its release function only.
//
// Call panics if data is not what [Callback.Set] has returned for these Callbacks. It allocates
// nothing, and takes no lock, unless a [LeakLevel] records the uses of this owner.
func (k *Callbacks[T]) Call(data unsafe.Pointer, f func(T)) {
	t := k.kind.Begin(uintptr(data))
	if t == nil {
		f(k.ended)
		return
	}
	defer t.End()
	v, _ := t.Value.(T) // Set has put it there; a nil interface is none
	f(v)
}

// Set makes value what C gets, and returns the number for C: its user data. The number stays the
// same until [Callback.Clear], so a second Set replaces the value without C. The number is never
// nil, points to nothing, and is not given out again; on 32-bit systems a number may be given out
// again after 262,144 others.
//
// The callback ends with the resource of o. A function of C that makes an object may need the
// number before there is an owner: then o is zero, and [Callback.Bind] names the owner later.
// Without an owner, the value answers as long as the Callback is reachable, and C must not call
// after that.
//
// The value may refer to anything, also to what has the Callback. Set panics if o owns nothing, or
// the Callback was set with other Callbacks and not cleared. On 32-bit systems it panics if there
// are more than 1,048,575 callbacks.
func (c *Callback[T]) Set(k *Callbacks[T], o Owner, value T) unsafe.Pointer {
	if o != (Owner{}) && o.ref.Sentinel() == nil {
		panicMisuse(k.kind.Name, "Set", "the Owner owns nothing; pass own.Owner{}, and call Bind after Own")
	}
	n := c.place.Set(&k.kind, o.ref, value)
	if n == 0 {
		panicMisuse(k.kind.Name, "Set", "the Callback is set with other Callbacks, and C has its number; call Clear first")
	}
	return cheap.Pointer(n)
}

// Bind makes the callback end with the resource of o. It panics if the Callback is not set, or o
// owns nothing.
func (c *Callback[T]) Bind(o Owner) {
	if o.ref.Sentinel() == nil {
		panicMisuse("own.Callback", "Bind", "the Owner owns nothing; call Own first")
	}
	if !c.place.Bind(o.ref) {
		panicMisuse("own.Callback", "Bind", "the Callback is not set; call Set first")
	}
}

// Data returns what Set has returned for the present value, or nil.
func (c *Callback[T]) Data() unsafe.Pointer {
	if n := c.place.Number(); n != 0 {
		return cheap.Pointer(n)
	}
	return nil
}

// Clear ends the callback: C gets the default from now on. It does nothing if the Callback is
// not set. A binding calls it when C has let go of the function, and a Close of a binding may call
// it, so that the value does not stay as long as what has the Callback.
func (c *Callback[T]) Clear() { c.place.Clear() }

// Hold keeps the callback, and all that its value refers to, reachable until [Callbacks.Weaken],
// [Callback.Clear], or the end of the owner. Held callbacks of a closed owner are given up after the
// next collection. Hold returns false if the callback has ended, also because the program has forgotten
// it: then the release of the resource is under way. It panics as [Callbacks.Call] does.
//
// data is the number that C has, which [Callback.Data] returns as well.
//
// Hold is for a library in which C keeps objects that Go forgets. Such a library tells when it takes
// its first reference to an object, beside that of the binding, and when it drops the last one:
// GObject by toggle references, others by two functions. The binding calls Hold and Weaken then:
//
//	self own.Callback[*Button] // in a Button: its value is the Button itself
//
//	//export goToggle
//	func goToggle(data unsafe.Pointer, last C.int) {
//		if last != 0 {
//			buttons.Weaken(data) // only the binding's reference is left
//		} else {
//			buttons.Hold(data)
//		}
//	}
//
// While a callback is held, its resource is not released by the collector. Hold does not count:
// one Weaken ends two Holds. A callback without an owner is held until Weaken or Clear.
//
// Hold brings back the cycles that lead through C. If the function of a held button refers to the
// window, and the window of C keeps the button of C, then nothing ends that but C or the program:
// by taking the button out of the window, or by Close of the window.
func (k *Callbacks[T]) Hold(data unsafe.Pointer) bool {
	t := k.kind.Find(uintptr(data))
	return t != nil && t.Hold()
}

// Weaken ends a Hold: from now on the callback lives as long as the Callback is reachable. It does
// nothing if there is no Hold. It panics as [Callbacks.Call] does.
func (k *Callbacks[T]) Weaken(data unsafe.Pointer) {
	if t := k.kind.Find(uintptr(data)); t != nil {
		t.Weaken()
	}
}
