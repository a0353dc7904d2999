//go:build race || asan || msan

package pace

// sanitized says that a sanitizer is built in, or the race detector. Their own memory is resident as
// well, several times as much as the program's, and they keep what was freed.
const sanitized = true
