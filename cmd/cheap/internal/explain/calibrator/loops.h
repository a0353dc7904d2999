#ifndef CALIBRATOR_LOOPS_H
#define CALIBRATOR_LOOPS_H

// Three kinds of functions that do nothing: without a result, with a small one, and with a large one.
// What cgo makes around a function copies its arguments and its result, and asks for Go's stack
// where there is a result.
void calibrator_nothing(void);
int calibrator_number(int number);

struct calibrator_node {
	unsigned context[4];
	const void *id, *tree;
};
struct calibrator_node calibrator_node(struct calibrator_node node);

// These call them n times, in one call.
void calibrator_nothings(long n);
void calibrator_numbers(long n);
void calibrator_nodes(long n);

// calibrator_back calls a Go function that does nothing, n times, in one call.
void calibrator_back(long n);

#endif
