//go:build !race && !asan && !msan

package pace

const sanitized = false
