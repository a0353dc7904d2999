//go:build race || asan || msan

package pace

// sanitized says that a sanitizer or the race detector is built in. Its own memory is resident as
// well, several times as much as the program's, and it keeps freed memory.
const sanitized = true
