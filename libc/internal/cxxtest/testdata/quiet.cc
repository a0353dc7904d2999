// What a binding without exceptions and without run-time type information writes.
#include "cheap.hpp"

class image {
public:
	int width() const { return 640; }
};

struct deleter {
	int *count;
	void operator()(image *m) const {
		++*count;
		delete m;
	}
};

using unique = std::unique_ptr<image>;
using counted = std::unique_ptr<image, deleter>;
using shared = std::shared_ptr<const image>;

template <class R> int use(void *p) {
	int width = cheap::get<R>(p)->width();
	cheap::destroy<R>(p, "Image");
	return width;
}

int use_all() {
	int count = 0;
	return use<image>(new image) + use<unique>(cheap::give(unique(new image))) +
		use<counted>(cheap::give(counted(new image, deleter{&count}))) +
		use<shared>(cheap::give(shared(new image)));
}
