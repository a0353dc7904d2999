//go:build cgo

#include <stdlib.h>

#include "draw.h"

draw_canvas *draw_new(int32_t width, int32_t height) {
	draw_canvas *canvas = calloc(1, sizeof *canvas);
	if (canvas == NULL) return NULL;
	canvas->width = width;
	canvas->height = height;
	canvas->pixels = calloc((size_t)width * height, sizeof *canvas->pixels);
	if (canvas->pixels == NULL) {
		free(canvas);
		return NULL;
	}
	return canvas;
}

void draw_free(draw_canvas *canvas) {
	free(canvas->pixels);
	free(canvas);
}

void draw_colour(draw_canvas *canvas, uint8_t r, uint8_t g, uint8_t b) {
	canvas->calls++;
	canvas->colour = (uint32_t)r << 16 | (uint32_t)g << 8 | b;
}

void draw_move(draw_canvas *canvas, float x, float y) {
	canvas->calls++;
	if (!(x >= 0 && x <= 1 && y >= 0 && y <= 1)) {
		canvas->wrong++;
		return;
	}
	canvas->x = (int32_t)(x * (canvas->width - 1));
	canvas->y = (int32_t)(y * (canvas->height - 1));
}

void draw_point(draw_canvas *canvas, int32_t dx, int32_t dy) {
	canvas->calls++;
	if (dx < -8 || dx > 8 || dy < -8 || dy > 8) {
		canvas->wrong++;
		return;
	}
	int32_t x = canvas->x + dx, y = canvas->y + dy;
	if (x >= 0 && x < canvas->width && y >= 0 && y < canvas->height) {
		canvas->pixels[(int64_t)y * canvas->width + x] += canvas->colour;
	}
}
