#include <stddef.h>

void *get(size_t n), *get_zeroed(size_t n), *get_aligned(size_t align, size_t n), *resized(void *p, size_t n);
void *get_huge(size_t n), *map_anonymous(size_t n), lock(void *p, size_t n);
void get_many(int count, size_t n), get_deep(int depth, size_t n), release(void *p), unmap(void *p, size_t n);
void map_many(int count), map_reserved(size_t n), map_shared(size_t n);
void free_in_arenas(int threads, size_t n), free_in_main(size_t n), stacks_of_threads(int threads);
void leaking_threads(int n), busy_threads(int n), in_child(int count, size_t n, int pause), call_back(int n);
extern void goCalledBack(int n);
