package fixheaders

import (
	"fmt"

	/*
		int look(const char *s);
	*/
	"C"
)

func group(name string) {
	fmt.Println(C.look(C.CString(name)) == 0) // want `nothing has it`
}
