#ifdef __cplusplus
extern "C" {
#endif

#define SHAPE_POOL "Shape" // in Go, C.SHAPE_POOL

void *shape_new(int sides); // NULL if it fails
int shape_sides(void *shape);
void shape_destroy(void *shape);
int shapes_alive(void);

#ifdef __cplusplus
}
#endif
