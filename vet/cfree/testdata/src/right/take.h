typedef struct box box;
/* box_put stores the string. The box takes ownership of it. */
void box_put(box *b, char *text);
/**
 * Sets the title.
 * @param b the box
 * @param title the text, which is freed together with the box
 */
void box_title(box *b, char *title);
/* The text is copied. */
void box_name(box *b, const char *text);
/* The caller must free the result. */
char *box_print(box *b);
/* Returns the kind. It belongs to the box, and must not be freed. */
char *box_kind(box *b);
box *box_open(const char *path);
void box_close(box *b);
void box_user(box *b, void *data);
void box_copy(box *b, void *data, size_t n);
// Returns the mark of a name. The value will be valid until the box is closed.
const char *box_mark(box *b, const char *name);
// Puts the text into the box. The option 1 consumes more time.
void box_pack(box *b, const char *text, int option);
// Puts the text into the box, and consumes the text.
void box_eat(box *b, char *text);
