//go:build cgo && cxx

#include "../shape.hpp"
#include "cheap.hpp"
#include "shape.h"

using shared = std::shared_ptr<Shape>;

void *shape_new(int sides) {
	try {
		return cheap::give(Shape::make(sides));
	} catch (...) { // an exception must not reach Go
		return nullptr;
	}
}

int shape_sides(void *p) { return cheap::get<shared>(p)->sides(); }

void shape_destroy(void *p) { cheap::destroy<shared>(p, SHAPE_POOL); }

int shapes_alive() { return Shape::alive(); }
