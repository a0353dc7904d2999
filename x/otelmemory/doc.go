// Package otelmemory shows the samples of heaps to a profiler outside of the process: to the
// eBPF profiler of OpenTelemetry, or to any other tool that reads USDT probes, such as bpftrace
// and perf. It is for Linux on amd64 and arm64, and needs cgo.
//
//	inspect.SetRate(inspect.DefaultRate)
//	if err := otelmemory.Enable(); err != nil {
//		log.Print(err) // the program runs on; the probes do not fire
//	}
//
// The profiler finds the probes in the file of the program, which has them if it imports this
// package. It takes the stacks itself, and combines what it sees of several processes. Until it
// attaches, a sample costs one load more than without this package. From then on each sample is
// a cgo call.
//
// # The probes
//
// The provider is otel_memory. All arguments are 8 bytes.
//
//	alloc(user, size, weighted_bytes)
//
// fires when a block is sampled: its address, its size in bytes, and the bytes for which the
// sample stands: size divided by the probability of a block of that size to be sampled. In the
// mean, the sum of weighted_bytes is the number of bytes that were allocated, and the sum of
// weighted_bytes / size the number of blocks.
//
//	free(ptr)
//
// fires when a sampled block is freed, or its heap is destroyed. It may also fire for blocks
// that were sampled before the tracer was attached, or before Enable.
//
// The contract is that of the design document "Memory Profiling" of
// open-telemetry/opentelemetry-ebpf-profiler (pull request 1672). It is of 2026, and the part of
// the profiler that reads the probes is under review (pull requests 1746 and 1747): names may
// change. What depends on it is in probes.go.
//
// The profiler reads the arguments from the registers in which a function of C has its first
// three. So the arguments are there, and the notes say the same.
package otelmemory
