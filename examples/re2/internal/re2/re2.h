#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

// The names of the pools, for Go and for C++.
#define REGEXP_POOL "re2.Regexp"
#define SET_POOL "re2.Set"

// A regexp is an expression. Threads may share it.
typedef struct regexp regexp;

// regexp_new makes a regexp of n bytes. regexp_error returns what is wrong with it, or
// NULL. Only a regexp without an error may be used further.
regexp *regexp_new(const char *expression, size_t n);
const char *regexp_error(const regexp *re);
int regexp_instructions(const regexp *re);
int regexp_groups(const regexp *re);
void regexp_destroy(void *re);

// regexp_find looks for the first match in n bytes. It returns whether there is one, and
// stores where the match and the groups in it begin and end: 2 * (groups + 1) numbers, -1
// for a group that is not in the match.
int regexp_find(const regexp *re, const char *text, size_t n, ptrdiff_t *at);

// A set looks for several expressions at once. Threads may share it.
typedef struct set set;

// set_new makes a set of the strings of a char ** that ends with NULL. If one of them is
// wrong, set_error returns what is wrong with it, else NULL.
set *set_new(const char *const *expressions);
const char *set_error(const set *s);
void set_destroy(void *s);

// set_match stores which expressions match, and returns their number. There is room for
// as many as there are expressions.
int set_match(const set *s, const char *text, size_t n, int *matches);

// The number of regexps and sets that are not destroyed.
long re2_alive(void);

#ifdef __cplusplus
}
#endif
