//go:build linux && cgo && libjpeg

// Images in C, and libjpeg-turbo to read and write them, in functions for cgo: one
// call for each step, which returns the image, its size and the error.

#ifndef RAW_H
#define RAW_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h> // needs stdio.h before it

// An image, its rows from the top: a byte each of red, green and blue.
typedef struct {
	int width, height;
	unsigned char pixels[];
} raw_image;

// The image that a function has made, or its error.
typedef struct {
	raw_image *image;              // NULL after an error
	size_t size;                   // in bytes
	char message[JMSG_LENGTH_MAX]; // of the error; empty without one
} raw_made;

raw_made raw_read(const char *file);
raw_made raw_scale(const raw_image *, int width);
raw_made raw_write(const raw_image *, const char *file, int quality);

// Frees an image: void (*)(void *).
void raw_free(void *image);
void *raw_destructor(void);

// The number of live images, and the sum of their bytes.
int64_t raw_live(void);
int64_t raw_bytes(void);

#endif
