#include "../library.h"
#include "../library.inc"
