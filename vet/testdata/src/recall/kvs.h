#include <stddef.h>
#include <stdint.h>
typedef struct kvs kvs; typedef struct kvs_stmt kvs_stmt; typedef struct kvs_cursor kvs_cursor;
typedef struct kvs_node { struct kvs_node *next, *prev; } kvs_node;
typedef struct { char *key, *value; } kvs_pair;
typedef struct { char *name; } kvs_config;
enum { KVS_OK, KVS_BUSY };
const char *kvs_errmsg(kvs *);
int kvs_close(kvs *); int kvs_open(const char *, kvs **); kvs *kvs_open1(const char *); kvs *kvs_open2(const char *);
int kvs_check(kvs *);
int kvs_prepare_v2(kvs *, const char *, int, kvs_stmt **, char **);
int kvs_bind_int(kvs_stmt *, int, int); int kvs_column_int(kvs_stmt *, int); int kvs_finalize(kvs_stmt *); int kvs_step(kvs_stmt *);
kvs_stmt *kvs_stmt_new(kvs *, const char *);
kvs_cursor *kvs_cursor_new(kvs *); void kvs_cursor_free(kvs_cursor *); int kvs_cursor_open(kvs *, kvs_cursor **); void kvs_seek(kvs_cursor *, const char *);
void kvs_use(kvs_pair *); int kvs_configure(kvs *, kvs_config *);
int kvs_hook(kvs *, uintptr_t); int kvs_each(kvs *, uintptr_t);
void kvs_dump(void *, size_t); void kvs_fill(char **, int); void kvs_join(void *, char **, int); int kvs_put_all(kvs *, char **, char **);
void kvs_node_free(kvs_node *); kvs_node *kvs_node_next(kvs_node *); void kvs_note(const char *);
