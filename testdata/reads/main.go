// The program of docs/reference/attacks.md for the address sanitizer: C reads a block that was freed.
package main

/*
static const char *name;

static void set_name(const char *s) { name = s; }
static char initial(void) { return name[0]; }
*/
import "C"

import (
	"fmt"

	"github.com/cheapgo/cheap"
	_ "github.com/cheapgo/cheap/asan"
)

// login gives C a name.
func login(name string) {
	s := cheap.CString(cheap.Default(), name)
	C.set_name((*C.char)(s))
	cheap.Free(s) // C has the pointer still
}

func main() {
	login("Ada")
	fmt.Printf("%c\n", C.initial())
}
