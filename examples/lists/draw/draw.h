#include <stdint.h>

// A canvas has a colour, an offset, pixels, and counts of its calls.
typedef struct draw_canvas {
	uint32_t colour;
	int32_t x, y, width, height;
	int64_t calls, wrong;
	uint32_t *pixels;
} draw_canvas;

draw_canvas *draw_new(int32_t width, int32_t height);
void draw_free(draw_canvas *canvas);

void draw_colour(draw_canvas *canvas, uint8_t r, uint8_t g, uint8_t b);
void draw_move(draw_canvas *canvas, float x, float y);     // from 0 to 1
void draw_point(draw_canvas *canvas, int32_t dx, int32_t dy); // at the offset, within 8 pixels
