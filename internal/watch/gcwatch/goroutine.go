package gcwatch

// GoroutineID returns a number that no other goroutine has at the same time. A goroutine
// keeps its number until it ends, also in a function that C has called back. A
// later goroutine may have the number again. The number is never 0.
//
// The number is the address of the runtime's record of the goroutine, which the
// Go assembler calls g. It is only compared, and nothing is read there. The
// runtime does not move or free such a record, but uses it again after the
// goroutine has ended.
func GoroutineID() uintptr
