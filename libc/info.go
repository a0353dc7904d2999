//go:build cgo

package libc

import (
	"strconv"
	"strings"

	"github.com/cheapgo/cheap/internal/mem/account"
)

// arenasIn parses what malloc_info of glibc prints: for each arena
//
//	<heap nr="0">
//	<sizes>...</sizes>
//	<total type="fast" count="1" size="32"/>
//	<total type="rest" count="2" size="1234"/>
//	<system type="current" size="135168"/>
//	...
//	</heap>
//
// and the sums over all arenas behind them. fast are the small free blocks that are not joined with others.
func arenasIn(text string) (all []account.Arena) {
	parts := strings.Split(text, "<heap nr=")
	for _, part := range parts[1:] {
		part, _, _ = strings.Cut(part, "</heap>")
		fast, rest := "<total type=\"fast\"", "<total type=\"rest\""
		all = append(all, account.Arena{
			System: attribute(part, "<system type=\"current\"", "size"),
			Free:   attribute(part, fast, "size") + attribute(part, rest, "size"),
			Blocks: attribute(part, fast, "count") + attribute(part, rest, "count"),
		})
	}
	return all
}

// attribute returns the number of an attribute of the first element that begins with a text, or 0.
func attribute(text, element, name string) int64 {
	_, rest, _ := strings.Cut(text, element)
	rest, _, _ = strings.Cut(rest, "/>")
	_, rest, _ = strings.Cut(rest, " "+name+"=\"")
	digits, _, _ := strings.Cut(rest, "\"")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
