#include <stdlib.h>
typedef struct kvs kvs; typedef struct kvs_cursor kvs_cursor;
enum { KVS_OK, KVS_BUSY };
const char *kvs_errmsg(kvs *); int kvs_open(const char *, kvs **); int kvs_close(kvs *); int kvs_check(kvs *);
void kvs_cursor_free(kvs_cursor *); void kvs_fill(char **, int);
