// Work for C whose time is known.

// noop does nothing.
void noop(void);

// noop_33 calls a function of C that does nothing, 32 times.
void noop_33(void);

// spin counts to n.
void spin(long n);

// spins calls spin so many times, in one call.
void spins(long calls, long n);

// call_go calls the Go function goNothing n times.
void call_go(long n);

// call_c is call_go with a function of C in the place of the Go function.
void call_c(long n);

// pairs is malloc and free of a block of so many bytes, n times, in one call. It writes to
// the block.
void pairs(long n, long size);
