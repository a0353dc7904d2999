int look(const char *s);
#include <stdlib.h>
