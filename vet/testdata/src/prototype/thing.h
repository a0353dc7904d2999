/* void thing_free(thing *t); was so in version 1 */
#ifndef THING_H
#define THING_H
#define THING_API(type) extern type
#include "things.h"

THING_API(void) thing_free(thing *t, int deep);
THING_API(void)
thing_drop(const thing *t) __attribute__((nonnull(1)));
extern int thing_close(thing *t);
extern void thing_end(void), thing_exit(int);
bool thing_ok(thing *t);
unsigned long thing_size(thing *t);
enum status thing_status(thing_ref t);
thing thing_copy(thing *t);
void thing_by_value(thing t);
double thing_weight(thing *t);
void *thing_new(void *context);
thing *thing_made(thing_ref like);
int thing_open(void *context);
void *thing_next(void);
void thing_number(uintptr_t t);
void thing_name(thing_id id);
void thing_unknown(other_t t);
other_t thing_other(void *context);
void thing_old();
void *alloca_of(size_t n);
void pool_drop(void *pool, thing *t);
int pool_drop_if(void (*log)(int, char *), thing t[]);
void pool_name(void *pool, unsigned int name);
#ifdef OLD
int thing_either(thing *t, int how);
#else
int thing_either(thing *t);
#endif
static inline int thing_calls(thing *t) { if (t) thing_drop(t); thing_free(t, 1); return thing_close(t); }
#endif
