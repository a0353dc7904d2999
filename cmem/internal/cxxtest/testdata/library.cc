// A library with operators of its own, which is preloaded.

#include "../operators.h"

extern "C" long cxxtest_library_news() { return cxxtest_news; }
