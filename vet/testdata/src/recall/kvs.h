#include <stdlib.h>
typedef struct kvs kvs;
enum { KVS_OK, KVS_BUSY };
int kvs_open(const char *, kvs **); int kvs_close(kvs *); int kvs_check(kvs *);
void kvs_fill(char **, int);
