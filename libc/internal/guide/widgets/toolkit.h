// A widget is a window or a button. It counts references, and is freed with the last. As in
// GTK, one thread at a time uses the toolkit.
typedef struct widget widget;

// The reference belongs to the caller, or the result is NULL.
widget *widget_new(void);
void widget_unref(void *widget);
int widgets_alive(void);

// widget_on_click has clicks call the function with data.
void widget_on_click(widget *widget, void *data);
void widget_click(widget *widget);

// widget_on_toggle has the toolkit call the function of toggles with data: last is 0 when somebody
// gets a reference beside the binding's, and 1 when only that is left.
void widget_on_toggle(widget *widget, void *data);

// window_add has the window keep the button, and window_empty takes all its buttons out.
void window_add(widget *window, widget *button);
void window_empty(widget *window);

// window_click clicks each button of the window, as a user does.
void window_click(widget *window);
