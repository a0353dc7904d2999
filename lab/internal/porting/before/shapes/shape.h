#ifdef __cplusplus
extern "C" {
#endif

void *shape_new(int sides); // NULL if it fails
int shape_sides(void *shape);
void shape_destroy(void *shape);
int shapes_alive(void);

#ifdef __cplusplus
}
#endif
