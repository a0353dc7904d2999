//go:build linux && cgo && libjpeg

// Images in C, and libjpeg-turbo to read and write them, in functions that suit
// cgo: one call for each, which returns the image, its size or what went wrong.

#ifndef RAW_H
#define RAW_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h> // wants stdio.h before it

// An image, its rows from the top: a byte each of red, green and blue.
typedef struct {
	int width, height;
	unsigned char pixels[];
} raw_image;

// What a function has made, or why it has not.
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

// How many images there are, and how many bytes they have.
int64_t raw_live(void);
int64_t raw_bytes(void);

#endif
