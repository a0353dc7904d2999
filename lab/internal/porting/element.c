#include <stdlib.h>

#include "element.h"

extern void elementSignal(void *data); // of Go

struct element { void *data; };

static int alive;

element *element_new(void) {
	element *e = calloc(1, sizeof *e);
	if (e) {
		__atomic_add_fetch(&alive, 1, __ATOMIC_SEQ_CST);
	}
	return e;
}

void element_free(void *e) {
	free(e);
	__atomic_sub_fetch(&alive, 1, __ATOMIC_SEQ_CST);
}

void element_connect(element *e, void *data) { e->data = data; }

void element_add_pad(element *e) {
	if (e->data) {
		elementSignal(e->data);
	}
}

int elements_alive(void) { return __atomic_load_n(&alive, __ATOMIC_SEQ_CST); }
