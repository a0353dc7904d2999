// A class that is only declared cannot be deleted: its destructor is not known.
#include "cheap.hpp"

class image;

void image_destroy(void *p) { cheap::destroy<image>(p, "Image"); }
