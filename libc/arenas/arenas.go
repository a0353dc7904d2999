//go:build cgo && linux

package arenas

/*
#include "arenas.h"
*/
import "C"

import (
	"github.com/cheapgo/cheap/internal/mem/account"
	_ "github.com/cheapgo/cheap/libc" // it tells package pace of malloc
)

func init() {
	if C.cheap_arenas_max > 0 {
		account.Process.BoundArenas()
	}
}
