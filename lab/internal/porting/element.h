// An element calls a function with user data when it gets a pad.
typedef struct element element;
element *element_new(void);
void element_free(void *element);
void element_connect(element *element, void *data);
void element_add_pad(element *element);
int elements_alive(void);
