// What bodies.c and bodies.go share.
struct cbody {
	const char *name;
	void (*f)(void);
	int leaks;
};

// cbodies_of returns the i-th body, or 0.
const struct cbody *cbodies_of(int i);
void cbodies_call(const struct cbody *b);

// cbodies_prepare does what happens before a check.
void cbodies_prepare(void);

// cbodies_string returns n bytes, which the caller frees.
char *cbodies_string(int n);
