// Trim has malloc give its memory back.
package main

import (
	"fmt"

	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/libc"
)

func main() {
	libc.Trim()
	_, _, ok := account.Process.Malloc().Read()
	fmt.Println(ok)
}
