//go:build cgo && linux

// C work of other kinds: SQLite, of a library that is loaded for it and unloaded, and functions that
// allocate within those of the C library.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static int row(void *arg, int n, char **values, char **names) {
	*(int *)arg += atoi(values[0]);
	return 0;
}

// cwork_sqlite loads SQLite, adds up 100 rows of a table, and unloads it. It returns their sum, or
// -1 if there is no such library.
int cwork_sqlite(void) {
	void *lib = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL), *db = 0;
	int sum = 0;
	if (!lib)
		return -1;
	int (*open)(const char *, void **) = dlsym(lib, "sqlite3_open");
	int (*close)(void *) = dlsym(lib, "sqlite3_close");
	int (*exec)(void *, const char *, int (*)(void *, int, char **, char **), void *, char **) = dlsym(lib, "sqlite3_exec");
	int bad = !open || !close || !exec || open(":memory:", &db);
	bad = bad || exec(db, "create table t(n, s); with recursive c(n) as (select 1 union all select n + 1 from c where n < 100) "
		"insert into t select n, hex(randomblob(n)) from c", 0, 0, 0);
	bad = bad || exec(db, "select n from t order by s", row, &sum, 0);
	if (db)
		close(db);
	dlclose(lib);
	return bad ? 0 : sum;
}

// cwork_sqlite_forgets opens a database and forgets it, with a statement. It returns 0 if there is no
// such library.
__attribute__((noinline)) int cwork_sqlite_forgets(void) {
	void *lib = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL), *db = 0, *statement = 0;
	if (!lib)
		return 0;
	int (*open)(const char *, void **) = dlsym(lib, "sqlite3_open");
	int (*prepare)(void *, const char *, int, void **, const char **) = dlsym(lib, "sqlite3_prepare_v2");
	return open && prepare && open(":memory:", &db) == 0 && prepare(db, "select 1 union select 2 order by 1", -1, &statement, 0) == 0;
}

static int compare(const void *p, const void *q) {
	void *volatile x = malloc(100);
	free(x);
	return *(const int *)p - *(const int *)q;
}
static int in_phdr(struct dl_phdr_info *info, size_t size, void *arg) {
	void *volatile p = malloc(200);
	free(p);
	++*(int *)arg;
	return 0;
}

// cwork_within allocates in callbacks of the C library, of which dl_iterate_phdr holds a lock of the
// dynamic linker. It returns the number of files, or 0 if something is wrong.
int cwork_within(void) {
	int n = 0, a[50];
	for (int i = 0; i < 50; i++)
		a[i] = i * 37 % 50;
	qsort(a, 50, sizeof *a, compare);
	for (int i = 0; i < 50; i++)
		if (a[i] != i)
			return 0;
	dl_iterate_phdr(in_phdr, &n);
	char *s = 0;
	size_t len;
	FILE *f = open_memstream(&s, &len); // it reallocates while the file is locked
	for (int i = 0; i < 1000; i++)
		fprintf(f, "%d ", i);
	fclose(f);
	if (!s || strlen(s) != len)
		n = 0;
	free(s);
	return n;
}

static void *thread(void *arg) {
	int n = *(int *)arg;
	for (int i = 0; i < 20; i++)
		cwork_within();
	return n > 0 ? arg : 0;
}

// cwork_many starts threads that do so, all at the same time.
void cwork_many(int threads) {
	pthread_t t[64];
	for (int i = 0; i < threads; i++)
		pthread_create(&t[i], 0, thread, &threads);
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], 0);
}

// cwork_child forks; the child allocates. It returns 0 if that went well.
int cwork_child(void) {
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); // if it hangs, the tests end and so does it
		for (int k = 0; k < 100; k++) {
			void *volatile p = malloc(5000);
			p = realloc(p, 9000);
			free(p);
		}
		_exit(0); // the dynamic linker's locks may be held by threads that are not here
	}
	int status = 1;
	return pid < 0 || waitpid(pid, &status, 0) != pid || status != 0;
}
