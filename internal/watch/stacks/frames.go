//go:build amd64 || arm64

package stacks

// MostFrames is the largest number that Frames returns.
const MostFrames = 32

// Frames writes the return addresses of the frames of the calling goroutine to pcs, from that
// of its caller on, and returns how many it wrote. It is 0 if the chain of frame pointers is
// broken, as it may be in a function that C has called back, or if the processor has none.
//
// That takes about a nanosecond for a frame, where runtime.Callers takes fifty. But a function
// that was inlined has no frame, and no entry. So the addresses tell two stacks apart, but are
// not a stack to print.
//
// On amd64 and arm64 Go code keeps frame pointers. A frame pointer points to the frame pointer
// of the caller, and the return address lies above that. The frame pointer of a goroutine's
// first frame is 0. Frames follows a pointer only to a higher address within the stack, whose
// end it finds in the second word of the goroutine's record, a place that runtime/cgo knows as
// well. It reads the stack only, whatever C has put into the frame pointer. In assembler code
// no goroutine is preempted, so the stack does not move meanwhile.
//
//go:noescape
func Frames(pcs *[MostFrames]uintptr) (n int)
