//go:build !linux

package pace

import "sync/atomic"

func residentBytes() int64 { return 0 }

func fileBytes() int64 { return 0 }

func anonymousBytes() int64 { return 0 }

// There are no usages: a limit is about what is counted.

func openProcessUsage(*atomic.Int64) usage { return nil }

func openCgroupUsage(string, *atomic.Int64) usage { return nil }
