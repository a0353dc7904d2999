//go:build cgo && linux

// Threads that end in odd ways.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *says(void *arg) {
	char *volatile s = strerror(123456); // the C library frees the text after all destructors
	return s ? 0 : arg;
}
static void *nothing(void *arg) {
	__atomic_store_n((int *)arg, (int)syscall(SYS_gettid), __ATOMIC_RELEASE);
	return 0;
}

// cwork_says has threads one after the other that have asked for the text of an error.
void cwork_says(int threads) {
	for (int i = 0; i < threads; i++) {
		pthread_t t;
		pthread_create(&t, 0, says, 0);
		pthread_join(t, 0);
	}
}

// cwork_detached starts threads that are detached and do nothing, and waits until the system knows
// none of them any more. The C library keeps the stacks of some, and unmaps those of the others.
void cwork_detached(int threads) {
	pthread_attr_t a;
	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	int ids[threads];
	for (int i = 0; i < threads; i++) {
		pthread_t t;
		ids[i] = 0;
		pthread_create(&t, &a, nothing, &ids[i]);
	}
	for (int i = 0; i < threads; i++)
		while (!__atomic_load_n(&ids[i], __ATOMIC_ACQUIRE) || syscall(SYS_tgkill, getpid(), ids[i], 0) == 0)
			usleep(100);
	pthread_attr_destroy(&a);
}

// cwork_late has threads that allocate first in the last call of a destructor.
static pthread_key_t late;
static void round_of(void *p) {
	char *n = p;
	if (n == (char *)4)
		free(malloc(900));
	pthread_setspecific(late, n + 1);
}
static void *starts_late(void *arg) {
	pthread_setspecific(late, (void *)1);
	return 0;
}
void cwork_late(int threads) {
	static int made;
	if (!made++)
		pthread_key_create(&late, round_of);
	for (int i = 0; i < threads; i++) {
		pthread_t t;
		pthread_create(&t, 0, starts_late, 0);
		pthread_join(t, 0);
	}
}

// cwork_cancelled cancels a thread that allocates while it has a lock, and returns 0 if the lock
// is free then.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *cancelled(void *arg) {
	pthread_cancel(pthread_self());
	pthread_mutex_lock(&lock);
	void *volatile p = malloc(5000);
	free(p);
	pthread_mutex_unlock(&lock);
	pthread_testcancel();
	return 0;
}
int cwork_cancelled(void) {
	pthread_t t;
	pthread_create(&t, 0, cancelled, 0);
	pthread_join(t, 0);
	return pthread_mutex_trylock(&lock) != 0 || pthread_mutex_unlock(&lock) != 0;
}

// cwork_fork_masks has threads fork that have different signals blocked, and returns how often one
// had others blocked afterwards.
static int fork_times;
static void *forks(void *arg) {
	int sig = arg ? SIGUSR1 : SIGUSR2;
	long bad = 0;
	sigset_t mine, is;
	sigemptyset(&mine);
	sigaddset(&mine, sig);
	for (int i = 0; i < fork_times; i++) {
		pthread_sigmask(SIG_SETMASK, &mine, 0);
		pid_t pid = fork();
		if (pid == 0)
			_exit(0);
		waitpid(pid, 0, 0);
		pthread_sigmask(SIG_SETMASK, 0, &is);
		bad += !sigismember(&is, sig) || sigismember(&is, arg ? SIGUSR2 : SIGUSR1) || sigismember(&is, SIGTERM);
	}
	return (void *)bad;
}
int cwork_fork_masks(int times) {
	pthread_t t[4];
	long bad = 0;
	fork_times = times;
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], 0, forks, i % 2 ? &fork_times : 0);
	for (int i = 0; i < 4; i++) {
		void *n;
		pthread_join(t[i], &n);
		bad += (long)n;
	}
	return bad;
}
