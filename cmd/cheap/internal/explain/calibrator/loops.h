// calibrator_nothing does nothing, and returns.
void calibrator_nothing(void);

// calibrator_nothings calls it n times, in one call.
void calibrator_nothings(long n);

// calibrator_back calls a Go function that does nothing, n times, in one call.
void calibrator_back(long n);
