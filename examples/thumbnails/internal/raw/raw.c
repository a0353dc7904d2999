//go:build linux && cgo && libjpeg

#include "raw.h"

#include <errno.h>
#include <jerror.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

// Images may be made and freed on any thread.
static int64_t live, bytes;

static size_t size_of(const raw_image *image)
{
	return sizeof *image + (size_t)image->width * image->height * 3;
}

// Returns an image of undefined contents, or NULL.
static raw_image *new_image(size_t width, size_t height)
{
	if (width == 0 || height > (SIZE_MAX - sizeof(raw_image)) / 3 / width)
		return NULL;
	raw_image *image = malloc(sizeof *image + width * height * 3);
	if (image == NULL)
		return NULL;
	image->width = width;
	image->height = height;
	__atomic_fetch_add(&live, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&bytes, size_of(image), __ATOMIC_RELAXED);
	return image;
}

void raw_free(void *image)
{
	if (image == NULL)
		return;
	__atomic_fetch_sub(&live, 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&bytes, size_of(image), __ATOMIC_RELAXED);
	free(image);
}

void *raw_destructor(void) { return (void *)raw_free; }
int64_t raw_live(void) { return __atomic_load_n(&live, __ATOMIC_RELAXED); }
int64_t raw_bytes(void) { return __atomic_load_n(&bytes, __ATOMIC_RELAXED); }

// The state of a decoding or encoding. It is not in local variables of the function
// that calls setjmp, whose values would be undefined after longjmp.
typedef struct {
	struct jpeg_error_mgr errors; // first, because libjpeg passes its address
	jmp_buf escape;
	union {
		struct jpeg_common_struct common;
		struct jpeg_decompress_struct in;
		struct jpeg_compress_struct out;
	} jpeg;
	raw_made made;
} codec;

// Ends the decoding or encoding. By default libjpeg would end the process.
static void fail(j_common_ptr jpeg)
{
	codec *c = (codec *)jpeg->err;
	c->errors.format_message(jpeg, c->made.message);
	longjmp(c->escape, 1);
}

// Treats warnings, which are about damaged data, as errors. By default libjpeg prints
// them, and makes up missing data.
static void message(j_common_ptr jpeg, int level)
{
	if (level < 0)
		fail(jpeg);
}

static void init(codec *c)
{
	memset(c, 0, sizeof *c);
	c->jpeg.common.err = jpeg_std_error(&c->errors);
	c->errors.error_exit = fail;
	c->errors.emit_message = message;
}

static void decode(codec *c, FILE *f)
{
	struct jpeg_decompress_struct *in = &c->jpeg.in;
	if (setjmp(c->escape) != 0) {
		raw_free(c->made.image);
		c->made.image = NULL;
	} else {
		jpeg_create_decompress(in);
		jpeg_stdio_src(in, f);
		jpeg_read_header(in, TRUE);
		in->out_color_space = JCS_RGB;
		jpeg_start_decompress(in);
		raw_image *image = new_image(in->output_width, in->output_height);
		if (image == NULL)
			ERREXIT1(in, JERR_OUT_OF_MEMORY, 0);
		c->made.image = image;
		c->made.size = size_of(image);
		while (in->output_scanline < in->output_height) {
			JSAMPROW row = image->pixels + (size_t)in->output_scanline * image->width * 3;
			jpeg_read_scanlines(in, &row, 1);
		}
		jpeg_finish_decompress(in);
	}
	jpeg_destroy_decompress(in);
}

static void encode(codec *c, FILE *f, const raw_image *image, int quality)
{
	struct jpeg_compress_struct *out = &c->jpeg.out;
	if (setjmp(c->escape) == 0) {
		jpeg_create_compress(out);
		jpeg_stdio_dest(out, f);
		out->image_width = image->width;
		out->image_height = image->height;
		out->input_components = 3;
		out->in_color_space = JCS_RGB;
		jpeg_set_defaults(out);
		jpeg_set_quality(out, quality, TRUE);
		jpeg_start_compress(out, TRUE);
		while (out->next_scanline < out->image_height) {
			// libjpeg only reads it, but does not say so.
			JSAMPROW row = (JSAMPROW)image->pixels + (size_t)out->next_scanline * image->width * 3;
			jpeg_write_scanlines(out, &row, 1);
		}
		jpeg_finish_compress(out);
	}
	jpeg_destroy_compress(out);
}

static void system_error(raw_made *m)
{
	snprintf(m->message, sizeof m->message, "%s", strerror(errno));
}

raw_made raw_read(const char *file)
{
	codec c;
	init(&c);
	FILE *f = fopen(file, "rb");
	if (f == NULL) {
		system_error(&c.made);
		return c.made;
	}
	decode(&c, f);
	fclose(f);
	return c.made;
}

raw_made raw_write(const raw_image *image, const char *file, int quality)
{
	codec c;
	init(&c);
	FILE *f = fopen(file, "wb");
	if (f == NULL) {
		system_error(&c.made);
		return c.made;
	}
	encode(&c, f, image, quality);
	if (fclose(f) != 0 && c.made.message[0] == 0)
		system_error(&c.made);
	return c.made;
}

// Each pixel becomes the mean of the pixels that it covers.
raw_made raw_scale(const raw_image *from, int width)
{
	raw_made m = {0};
	if (width < 1 || width > from->width) {
		snprintf(m.message, sizeof m.message, "a width of %d, from 1 to %d is possible", width, from->width);
		return m;
	}
	int64_t height = (int64_t)from->height * width / from->width;
	if (height < 1)
		height = 1;
	raw_image *to = new_image(width, height);
	if (to == NULL) {
		snprintf(m.message, sizeof m.message, "no memory for %d x %lld pixels", width, (long long)height);
		return m;
	}
	unsigned char *pixel = to->pixels;
	for (int64_t y = 0; y < height; y++) {
		int64_t top = y * from->height / height, bottom = (y + 1) * from->height / height;
		for (int64_t x = 0; x < width; x++, pixel += 3) {
			int64_t left = x * from->width / width, right = (x + 1) * from->width / width;
			int64_t sum[3] = {0}, n = (bottom - top) * (right - left);
			for (int64_t row = top; row < bottom; row++) {
				const unsigned char *p = from->pixels + (row * from->width + left) * 3;
				for (int64_t i = left; i < right; i++, p += 3) {
					sum[0] += p[0];
					sum[1] += p[1];
					sum[2] += p[2];
				}
			}
			for (int i = 0; i < 3; i++)
				pixel[i] = (sum[i] + n / 2) / n;
		}
	}
	m.image = to;
	m.size = size_of(to);
	return m;
}
