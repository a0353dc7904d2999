// calibrator_interrupt interrupts the calling thread for the profiler of Go, so many times a
// second of the clock. The profiler must run. calibrator_end ends that. Both are of Linux, where
// the profiler's own timer runs by the processor time of the thread: the kernel looks at that at
// each tick of its clock only, often 250 times a second.
void calibrator_interrupt(long hertz);
void calibrator_end(void);
