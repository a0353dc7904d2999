//go:build cgo && cxx

#include "../../shape.hpp"
#include "shape.h"

using shared = std::shared_ptr<Shape>;

void *shape_new(int sides) {
	try {
		return new shared(Shape::make(sides));
	} catch (...) { // an exception must not reach Go
		return nullptr;
	}
}

int shape_sides(void *p) { return (*static_cast<shared *>(p))->sides(); }

void shape_destroy(void *p) { delete static_cast<shared *>(p); }

int shapes_alive() { return Shape::alive(); }
