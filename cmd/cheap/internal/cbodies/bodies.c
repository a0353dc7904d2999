// See bodies.go.

#define _GNU_SOURCE
#include "bodies.h"

#include <dirent.h>
#include <dlfcn.h>
#include <glob.h>
#include <iconv.h>
#include <locale.h>
#include <netdb.h>
#include <pthread.h>
#include <pwd.h>
#include <regex.h>
#include <search.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

// block is malloc, which the compiler does not leave out.
static __attribute__((noinline)) char *block(size_t n) {
	char *volatile p = malloc(n);
	if (!p)
		abort();
	return memset(p, 1, n);
}

// next is a number below n, the same in each process.
static uint32_t next(uint32_t n) {
	static uint64_t x = 1;
	x = x * 6364136223846793005u + 1442695040888963407u;
	return (x >> 33) % n;
}

static void pair(void) { free(block(100)); }

static void many(void) {
	char *all[50];
	for (int i = 0; i < 50; i++)
		all[i] = block(1 + i * 37);
	for (int i = 0; i < 50; i++)
		free(all[(i * 7) % 50]);
}

static void resized(void) {
	char *p = calloc(3, 5);
	for (size_t n = 16; n < 300000; n *= 3)
		p = realloc(p, n);
	free(p);
}

static void aligned(void) {
	void *p;
	if (posix_memalign(&p, 64, 1000) == 0)
		free(p);
	free(aligned_alloc(4096, 8192));
}

static void locale(void) {
	setlocale(LC_ALL, "C.UTF-8");
	wchar_t wide[10];
	mbstowcs(wide, "\xc3\xa4", 10);
	setlocale(LC_ALL, "C");
}

static void own_locale(void) {
	locale_t l = newlocale(LC_ALL_MASK, "C.UTF-8", 0), d = l ? duplocale(l) : 0;
	if (d)
		freelocale(d);
	if (l)
		freelocale(l);
}

static void library(void) {
	void *h = dlopen("libresolv.so.2", RTLD_NOW);
	if (h)
		dlclose(h);
}

static void no_library(void) {
	dlopen("/nowhere/libnone.so", RTLD_NOW);
	dlerror();
}

static void *in_thread(void *arg) {
	free(block(*(size_t *)arg));
	return 0;
}

static void thread(void) {
	pthread_t t;
	size_t n = 5000;
	if (pthread_create(&t, 0, in_thread, &n) == 0)
		pthread_join(t, 0);
}

static void *work(void *arg) {
	for (int i = 0; i < 2; i++)
		many();
	return arg;
}

// arenas has threads at the same time, which get arenas of their own.
static void arenas(void) {
	pthread_t t[4];
	int n = 0;
	while (n < 4 && pthread_create(&t[n], 0, work, 0) == 0)
		n++;
	while (n > 0)
		pthread_join(t[--n], 0);
}

static pthread_key_t key;
static void make_key(void) { pthread_key_create(&key, free); }
static void *with_key(void *arg) {
	pthread_setspecific(key, block(64));
	return arg;
}

// keyed has blocks of threads, which the ends of the threads free.
static void keyed(void) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_t t;
	pthread_once(&once, make_key);
	if (pthread_create(&t, 0, with_key, 0) == 0)
		pthread_join(t, 0);
}

static void *post(void *sem) {
	char *p = block(32);
	sem_post(sem);
	free(p);
	return 0;
}

// detached has threads that are perhaps not over when it returns.
static void detached(void) {
	static sem_t sem;
	static int made;
	pthread_attr_t a;
	pthread_t t;
	if (!made++)
		sem_init(&sem, 0, 0);
	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&t, &a, post, &sem) == 0)
		sem_wait(&sem);
	pthread_attr_destroy(&a);
}

static void lazy(void) {
	static char *once;
	if (!once)
		once = block(1000);
}

// late makes something in its 250th call, and is done then.
static void late(void) {
	static int calls;
	static char *once;
	if (++calls == 250)
		once = block(1000);
	(void)once;
}

static __thread char *of_thread;
static void lazy_threads(void) {
	if (!of_thread)
		of_thread = block(80);
}

// pool keeps up to 50 blocks for later.
static void pool(void) {
	static char *kept[50];
	static int n;
	char *mine[80];
	int want = next(80);
	for (int i = 0; i < want; i++)
		mine[i] = n > 0 ? kept[--n] : block(48);
	for (int i = 0; i < want; i++)
		if (n < 50)
			kept[n++] = mine[i];
		else
			free(mine[i]);
}

// fills is a cache that has room for each key, of which a call uses one.
static void fills(void) {
	static char *cache[500];
	static int calls;
	int at = calls++ % 500;
	if (!cache[at])
		cache[at] = block(24);
}

// slowly meets one of 1,000 keys by chance.
static void slowly(void) {
	static char *cache[1000];
	int at = next(1000);
	if (!cache[at])
		cache[at] = block(24);
}

// Caches that throw the oldest entry out; the second is full before the check.
static char *ring[700], *full[2000];
static void oldest(void) {
	static int at;
	free(ring[at]);
	ring[at] = block(40);
	at = (at + 1) % 700;
}
static void replaced(void) {
	static int at;
	free(full[at]);
	full[at] = block(56);
	at = (at + 1) % 2000;
}

// pages is a cache of up to 300 pages, in a table that is made anew as it grows.
static void pages(void) {
	static char **table;
	static int size, n;
	for (int i = 0; i < 3; i++) {
		if (n < 300) {
			if (n == size) {
				size = size ? 2 * size : 16;
				table = realloc(table, size * sizeof *table);
			}
			table[n++] = block(512);
		} else {
			int at = next(300);
			free(table[at]);
			table[at] = block(512);
		}
	}
}

static void errors(void) {
	static __thread char *last;
	char *text;
	if (asprintf(&text, "error %u in call %u", next(1000), next(1000000)) > 0) {
		free(last);
		last = text;
	}
	free(strdup(strerror(10000 + next(5))));
}

static void environment(void) {
	setenv("CBODIES_A", next(2) ? "one" : "another", 1);
	char *v = getenv("CBODIES_A");
	free(v ? strdup(v) : 0);
	unsetenv("CBODIES_A");
}

static void converted(void) {
	iconv_t c = iconv_open("UTF-16", "ISO-8859-15");
	if (c == (iconv_t)-1)
		return;
	char in[] = "text", out[64], *from = in, *to = out;
	size_t n = 4, room = sizeof out;
	iconv(c, &from, &n, &to, &room);
	iconv_close(c);
}

static void expression(void) {
	regex_t r;
	if (regcomp(&r, "^(a|b)*[0-9]{2,5}(x|yz)+$", REG_EXTENDED) == 0) {
		regexec(&r, "abab123xyz", 0, 0, 0);
		regfree(&r);
	}
}

static void file(void) {
	char line[100];
	FILE *f = fopen("/proc/self/status", "r");
	if (!f)
		return;
	while (fgets(line, sizeof line, f))
		;
	fclose(f);
}

static void memory_stream(void) {
	char *p = 0;
	size_t n;
	FILE *f = open_memstream(&p, &n);
	if (!f)
		return;
	for (int i = 0; i < 100; i++)
		fprintf(f, "%d %.30f %300d\n", i, 1.0 / (i + 1), i);
	fclose(f);
	free(p);
}

// line reads lines with a buffer that it keeps.
static void line(void) {
	static char *buffer;
	static size_t size;
	char text[400];
	size_t n = 1 + next(300);
	memset(text, 'x', n);
	text[n - 1] = '\n';
	FILE *f = fmemopen(text, n, "r");
	if (!f)
		return;
	if (getline(&buffer, &size, f) < 0)
		abort();
	fclose(f);
}

static int compare(const void *a, const void *b) { return memcmp(a, b, 400); }
static void sorted(void) {
	static char all[50][400]; // large elements: qsort has a block of its own for pointers
	for (int i = 0; i < 50; i++)
		memset(all[i], next(256), 400);
	qsort(all, 50, 400, compare);
}

static void found(void) {
	glob_t g;
	struct dirent **names;
	if (glob("/proc/s*", 0, 0, &g) == 0)
		globfree(&g);
	int n = scandir("/proc/self", &names, 0, alphasort);
	if (n < 0)
		return;
	while (n > 0)
		free(names[--n]);
	free(names);
}

static void address(void) {
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST}, *all;
	if (getaddrinfo("127.0.0.1", "80", &hints, &all) == 0)
		freeaddrinfo(all);
}

static void user(void) { getpwuid(getuid()); }

static void printed(void) {
	char text[4000];
	snprintf(text, sizeof text, "%.900f %1000d %ls", 1e300, 7, L"wide");
}

static void formatted_time(void) {
	char text[100];
	time_t now = 1000000 + next(1000000);
	struct tm t;
	tzset();
	strftime(text, sizeof text, "%c %Z", localtime_r(&now, &t));
}

// cleared is a list that is emptied in each 64th call.
static void cleared(void) {
	static char *all[64];
	static int n;
	all[n++] = block(16);
	if (n == 64)
		while (n > 0)
			free(all[--n]);
}

// walks is a queue whose length changes by chance, between 0 and 60.
static void walks(void) {
	static char *all[60];
	static int n;
	for (int i = 0; i < 200; i++)
		if (next(2) == 0) {
			if (n < 60)
				all[n++] = block(16);
		} else if (n > 0)
			free(all[--n]);
}

// replies keeps as many blocks as chance says until the next call.
static void replies(void) {
	static char *all[40];
	static int n;
	while (n > 0)
		free(all[--n]);
	for (int want = next(40); n < want;)
		all[n++] = block(16 + next(1000));
}

static void interned(void) {
	static char *all[300];
	uint32_t at = next(300);
	char text[20];
	snprintf(text, sizeof text, "name %u", at);
	if (!all[at])
		all[at] = strdup(text);
}

// high keeps the largest buffer that it ever needed.
static void high(void) {
	static char *buffer;
	static size_t size;
	size_t n = 1 + next(10000);
	if (n > size)
		buffer = realloc(buffer, size = n);
	memset(buffer, 0, n);
}

static void mapping(void) {
	void *p = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p != MAP_FAILED)
		munmap(p, 1 << 16);
}

// mappings keeps up to eight.
static void mappings(void) {
	static void *all[8];
	static int at;
	if (all[at])
		munmap(all[at], 1 << 16);
	all[at] = mmap(0, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	at = (at + 1) % 8;
}

static int by_value(const void *a, const void *b) { return *(int *)a - *(int *)b; }
static void nothing(void *p) { (void)p; }
static void tree(void) {
	static int values[30];
	void *root = 0;
	for (int i = 0; i < 30; i++) {
		values[i] = next(1000);
		tsearch(&values[i], &root, by_value);
	}
	tdestroy(root, nothing);
}

static void timer(void) {
	timer_t t;
	struct sigevent e = {.sigev_notify = SIGEV_NONE};
	if (timer_create(CLOCK_MONOTONIC, &e, &t) == 0)
		timer_delete(t);
}

// sql uses the SQLite of the system, if there is one: its page cache, its statements and its look-aside memory.
static void sql(void) {
	static void *h, *db;
	static int tried;
	static int (*exec)(void *, const char *, void *, void *, char **);
	if (!tried++) {
		int (*open_db)(const char *, void **);
		if (!(h = dlopen("libsqlite3.so.0", RTLD_NOW)))
			return;
		*(void **)&open_db = dlsym(h, "sqlite3_open");
		*(void **)&exec = dlsym(h, "sqlite3_exec");
		if (!open_db || !exec || open_db("", &db) != 0)
			exec = 0;
		else
			exec(db, "CREATE TABLE t(i INTEGER PRIMARY KEY, b BLOB); PRAGMA cache_size = 100", 0, 0, 0);
	}
	if (exec)
		exec(db, "INSERT OR REPLACE INTO t VALUES (abs(random()) % 400, randomblob(900)); SELECT sum(length(b)) FROM t",
			0, 0, 0);
}

// What leaks. These functions are exported, so that they have names in a program without symbols, too.

static char *volatile lost;

__attribute__((noinline)) void leak(size_t n) { lost = block(n); }

void each(void) { leak(16); }

void one_in_100(void) {
	static int calls;
	many();
	if (++calls % 100 == 0)
		leak(16);
}

void one_in_100_with_pool(void) {
	static int calls;
	pool();
	replies();
	if (++calls % 100 == 37)
		leak(16);
}

static struct {
	char *all;
	size_t n, size;
} long_vector;

void vector(void) {
	if (long_vector.n == long_vector.size) {
		long_vector.size = long_vector.size ? 2 * long_vector.size : 16;
		long_vector.all = realloc(long_vector.all, long_vector.size);
	}
	long_vector.all[long_vector.n++] = 1;
}

static void *leaks_in_thread(void *arg) {
	leak(16);
	return arg;
}
void thread_leak(void) {
	pthread_t t;
	if (pthread_create(&t, 0, leaks_in_thread, 0) == 0)
		pthread_join(t, 0);
}

void mapping_leak(void) {
	static int calls;
	if (++calls % 100 == 0)
		mmap(0, 1 << 16, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void locale_leak(void) { newlocale(LC_ALL_MASK, "C.UTF-8", 0), leak(1); }

void file_leak(void) {
	static int calls;
	static char *p;
	static size_t n;
	if (++calls % 100 == 0)
		open_memstream(&p, &n);
}

// A thread that was there before the check, and does what is asked of it.
static sem_t asked, answered;
static int has_worker;
static void *worker(void *arg) {
	for (;;) {
		sem_wait(&asked);
		leak(16);
		sem_post(&answered);
	}
	return arg;
}
void old_thread_leak(void) {
	sem_post(&asked);
	sem_wait(&answered);
}

void cbodies_prepare(void) {
	pthread_t t;
	for (int i = 0; i < 2000; i++)
		full[i] = block(56);
	free(long_vector.all); // a test may run more than once
	memset(&long_vector, 0, sizeof long_vector);
	if (!has_worker++) {
		sem_init(&asked, 0, 0);
		sem_init(&answered, 0, 0);
		if (pthread_create(&t, 0, worker, 0) != 0)
			abort();
	}
	old_thread_leak(); // so that it has a record, and a distance to its next sample
}

char *cbodies_string(int n) { return block(n); }

static const struct cbody all[] = {
#define CORRECT(f) \
	{ #f, f, 0 }
#define LEAKS(f) \
	{ #f, f, 1 }
	CORRECT(pair),
	CORRECT(many),
	CORRECT(resized),
	CORRECT(aligned),
	CORRECT(locale),
	CORRECT(own_locale),
	CORRECT(library),
	CORRECT(no_library),
	CORRECT(thread),
	CORRECT(arenas),
	CORRECT(keyed),
	CORRECT(detached),
	CORRECT(lazy),
	CORRECT(late),
	CORRECT(lazy_threads),
	CORRECT(pool),
	CORRECT(fills),
	CORRECT(slowly),
	CORRECT(oldest),
	CORRECT(replaced),
	CORRECT(pages),
	CORRECT(errors),
	CORRECT(environment),
	CORRECT(converted),
	CORRECT(expression),
	CORRECT(file),
	CORRECT(memory_stream),
	CORRECT(line),
	CORRECT(sorted),
	CORRECT(found),
	CORRECT(address),
	CORRECT(user),
	CORRECT(printed),
	CORRECT(formatted_time),
	CORRECT(cleared),
	CORRECT(walks),
	CORRECT(replies),
	CORRECT(interned),
	CORRECT(high),
	CORRECT(mapping),
	CORRECT(mappings),
	CORRECT(tree),
	CORRECT(timer),
	CORRECT(sql),
	LEAKS(each),
	LEAKS(one_in_100),
	LEAKS(one_in_100_with_pool),
	LEAKS(vector),
	LEAKS(thread_leak),
	LEAKS(mapping_leak),
	LEAKS(locale_leak),
	LEAKS(file_leak),
	LEAKS(old_thread_leak),
};

const struct cbody *cbodies_of(int i) { return i < (int)(sizeof all / sizeof *all) ? &all[i] : 0; }

void cbodies_call(const struct cbody *b) { b->f(); }
