//go:build cgo

#include <stdatomic.h>
#include <stdlib.h>

#include "toolkit.h"

// These are exported by Go.
extern void widgetsClicked(void *data);
extern void widgetsToggled(void *data, int last);

struct widget {
	int refs;
	void *click, *toggle; // user data
	widget *first, *next; // the first button of a window; the next of the same window
};

static atomic_int alive;

widget *widget_new(void) {
	widget *w = calloc(1, sizeof *w);
	if (w) {
		w->refs = 1;
		alive++;
	}
	return w;
}

int widgets_alive(void) { return alive; }

static void ref(widget *w) {
	if (++w->refs == 2 && w->toggle) widgetsToggled(w->toggle, 0);
}

void widget_unref(void *p) {
	widget *w = p;
	if (--w->refs > 0) {
		if (w->refs == 1 && w->toggle) widgetsToggled(w->toggle, 1);
		return;
	}
	window_empty(w);
	alive--;
	free(w);
}

void widget_on_click(widget *w, void *data) { w->click = data; }

void widget_on_toggle(widget *w, void *data) { w->toggle = data; }

void widget_click(widget *w) {
	ref(w); // the function may drop the widget
	if (w->click) widgetsClicked(w->click);
	widget_unref(w);
}

void window_add(widget *window, widget *button) {
	ref(button);
	button->next = window->first;
	window->first = button;
}

void window_empty(widget *window) {
	while (window->first) {
		widget *b = window->first;
		window->first = b->next;
		widget_unref(b);
	}
}

void window_click(widget *window) {
	for (widget *b = window->first, *next; b; b = next) {
		next = b->next;
		widget_click(b);
	}
}
