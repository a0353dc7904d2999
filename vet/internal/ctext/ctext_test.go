package ctext

import (
	"fmt"
	"strings"
	"testing"
)

// TestFunc reads functions named f, beside others.
func TestFunc(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{`char *f(size_t n) { return malloc(n); }`, "allocates"},
		{`static inline char *f(const char *s) { return (char *)strdup(s); }`, "allocates"},
		{`void *f(int n) { void *p = calloc(n, 8); if (!p) { return NULL; } memset(p, 1, n); return p; }`, "allocates"},
		{`char *f(char *s) { char *p; int n = strlen(s); p = (char*)malloc(n + 1); strcpy(p, s); return p; }`, "allocates"},
		{`char *f(int n) { char *s = NULL; asprintf(&s, "%d", n); return s; }`, "allocates"},
		{`char *f(FILE *in) { char *p = malloc(9); if (fread(p, 1, 9, in) != 9) { free(p); return NULL; } return p; }`, "allocates"},
		{`char *g(int n) { return malloc(n); } char *f(int n) { char *p = g(n); p[0] = 'f'; return p; }`, "allocates"},
		{`char *f(const char *s) { /* free(s); */ return strdup(s); } // return s;`, "allocates"},
		{`char *f(const char *s) { return strcmp(s, "a") ? NULL : strdup(s); }`, "allocates"},

		{`const char *f(int n) { return n ? f(text(n)) : NULL; } const char *f(text t) { return strdup(t.s); }`, "allocates"},

		{`char *f(const char *s) { return *s ? strdup(s) : "none"; }`, ""},
		{`Mat f(Filter k) { return new Mat(k->state); }`, "news"},
		{`char *f(struct list *l) { char *p = malloc(9); l->first = p; return p; }`, ""},
		{`char *f(void) { char *p = malloc(9); list_add(&all, p); return p; }`, ""},
		{`char *f(void) { char *p = malloc(9); kept = p; return p; }`, ""},
		{`char *f(char **out) { char *p = malloc(9); *out = p; return p; }`, ""},
		{`char *f(void) { static char *p; if (!p) p = malloc(9); return p; }`, ""},
		{`char *f(char *s) { char *p = malloc(9); if (s) { p = s; } return p; }`, "returns 0"},
		{`char *f(int n) { char *p = malloc(9); if (n) return "text"; return p; }`, ""},
		{`char *f(int n) { char *p = malloc(9); free(p); return p; }`, ""},
		{`char *f(int n) { char *p = malloc(9); g(&p); return p; }`, ""},
		{`size_t f(int n) { return strlen(malloc(n)); }`, ""},
		{`struct s *f(int n) { struct s *p = malloc(9), *q; q = p; all[0] = q; return p; }`, ""},
		{`char *f(char *s) { return rewrite(strdup(s)); }`, ""},

		{`int f(char **out, int n) { char *p = malloc(n); if (!p) return -1; *out = p; return 0; }`, "makes 0"},
		{`int f(const char *s, char **err) { if (*s) return 0; *err = strdup("empty"); return -1; }`, "makes 1"},
		{`int f(char **out, int n) { *out = NULL; if (n) *out = malloc(n); return 0; }`, "makes 0"},
		{`int f(char **out, int n) { *out = n ? malloc(n) : "none"; return 0; }`, ""},
		{`int f(char **out) { *out = malloc(4); pool[n++] = *out; return 0; }`, ""},
		{`int f(char **out) { if (!out) return 1; if (!*out) *out = malloc(4); return 0; }`, ""},
		{`int f(char **out) { *out = "a"; if (all) *out = strdup(all); return 0; }`, ""},
		{`void f(context *c, const char *s) { result_text(c, s, -1, &free); }`, "keeps 0 keeps 1 takes 1"},
		{`void g(void *p, char *s) { take(p, s); } void f(void *p, char *s) { g(p, s); }`, "keeps 1 takes 1"},

		{`void f(struct buf *b) { if (!b) return; free(b->data); free(b); }`, "frees 0"},
		{`void f(int n, char **list) { for (int i = 0; i < n; i++) free(list[i]); free((void *)list); }`, "frees 1"},
		{`void g(char *s) { free(s); } void f(int n, char *s) { g(s); }`, "frees 1"},
		{`void f(void *p) { struct x *x = (struct x *)p; x_destroy(x); }`, "frees 0"},
		{`void f(thing *t) { delete t; }`, "frees 0"},
		{`void f(struct buf *b) { free(b->data); b->data = NULL; }`, ""},
		{`void f(char *s) { s = lower(s); free(s); }`, ""},
		{`void f(char *s) { puts(s); }`, ""},
		{`void g(char *s) { f(s); } void f(char *s) { g(s); }`, ""},

		{`void f(char **a, char *s, int n) { a[n] = s; }`, "keeps 1"},
		{`void f(struct x *x, char *s) { x->name = (char *)s; }`, "keeps 1"},
		{`void f(char *s) { name = s; }`, "keeps 0"},
		{`void f(char **to, char *s) { *to = s; }`, "keeps 1"},
		{`void f(char *s) { set(interp, s, free_string); }`, "keeps 0"},
		{`char *f(const char *s) { return (char *)s; }`, "returns 0"},
		{`void f(char *s) { char *t = s; global.name = t; }`, "keeps 0"},
		{`void g(char *s) { kept = s; } void f(char *s) { g(s); }`, "keeps 0"},
		{`void f(char *s) { char *args[2]; args[0] = s; args[1] = NULL; run(args); }`, ""},
		{`void f(char *s) { struct options o; o.name = s; run(&o); }`, ""},
		{`int f(char *s) { char *p; for (p = s; *p; p++) { if (*p == 'x') return 1; } return 0; }`, ""},
		{`int f(char *s) { if (kept == s) return 1; return 0; }`, ""},
	} {
		var functions Functions
		functions.Ends = func(name string) bool { return strings.Contains(name, "free") || strings.Contains(name, "destroy") }
		functions.Takes = func(name string, arg int) bool { return name == "take" && arg == 1 }
		functions.Add(test.text, false)
		fn, ok := functions.Func("f")
		if !ok {
			t.Errorf("%s: no definition", test.text)
			continue
		}
		if got := say(fn); got != test.want {
			t.Errorf("%s:\n%q, want %q", test.text, got, test.want)
		}
	}
}

// say writes what a function does.
func say(fn Func) string {
	var list []string
	if fn.Allocates {
		list = append(list, "allocates")
	}
	if fn.News {
		list = append(list, "news")
	}
	for i := range fn.Frees {
		if fn.Frees[i] {
			list = append(list, fmt.Sprint("frees ", i))
		}
		if fn.Keeps[i] {
			list = append(list, fmt.Sprint("keeps ", i))
		}
		if fn.Returns[i] {
			list = append(list, fmt.Sprint("returns ", i))
		}
		if fn.Takes[i] {
			list = append(list, fmt.Sprint("takes ", i))
		}
		if fn.Makes[i] {
			list = append(list, fmt.Sprint("makes ", i))
		}
	}
	return strings.Join(list, " ")
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	functions := Functions{Ends: func(name string) bool { return name == "free" }}
	functions.Add("#ifdef A\nchar *f(char *s) { free(s); return malloc(1); }\n#else\nchar *f(char *s) {\n#define X }\nreturn kept; }\n#endif", false)
	functions.Add("void g(int n, char *s) { name = s; } void h(options *o, char *s) { o->name = s; }", true)
	for name, want := range map[string]string{"f": "frees 0", "g": "", "h": ""} {
		if fn, _ := functions.Func(name); say(fn) != want {
			t.Errorf("%s: %q, want %q", name, say(fn), want)
		}
	}
	if _, ok := functions.Func("if"); ok {
		t.Error("an if statement is a function")
	}
}
