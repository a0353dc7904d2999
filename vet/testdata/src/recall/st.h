#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct st st;
typedef struct st_iter st_iter;
typedef struct { char *key; char *value; } st_pair;

/* Opens a store. The path is copied. */
st *st_open(const char *path);
void st_close(st *s);
int st_get(st *s, const char *key);
int st_put(st *s, const void *p, size_t n);
int st_put_pair(st *s, st_pair *pair);
int st_put_list(st *s, char **list, size_t n);
/* Returns a new string. The caller must free() it. */
char *st_dump(st *s);
/* Returns the last error. It belongs to the store and must not be freed. */
char *st_error(st *s);
/* On failure *error is set to a message, which the caller must free(). */
int st_sync(st *s, char **error);
/* The store keeps the pointer until st_close. It is not copied. */
void st_set_label(st *s, const char *label);
/* The store keeps buf and writes to it later. */
void st_set_buffer(st *s, void *buf, size_t n);
/* Takes ownership of p, which must come from malloc. */
void st_adopt(st *s, void *p);
/* user is given back to each callback. The store keeps it. */
void st_set_user(st *s, void *user);
void st_set_hook(st *s, uintptr_t handle);
st_iter *st_iter_new(st *s);
int st_iter_next(st_iter *it);
/* Returns the key, which is valid until the next call with it. */
const char *st_iter_key(st_iter *it);
void st_iter_free(st_iter *it);
void st_iter_init(st *s, st_iter **it);
const char *st_name(st *s);
typedef struct st_node { struct st_node *next; } st_node;
st_node *st_nodes(void);
void st_free(void *p);
/* On failure *error is set to a message, which the caller must free with st_free(). */
int st_exec(st *s, char **error);
struct st { void *user; };
static void st_hold(st *s, void *user) { s->user = user; }
void st_bind(st *s, const char *text, void (*destroy)(void *));
static void st_own(st *s, char *text) { st_bind(s, text, free); }
