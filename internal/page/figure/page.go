package figure

import _ "embed"

// CSS is the style that the pages of this repository have in common: colors, light and dark, text
// and tables, on a phone and on a desk. A page adds rules of its own behind it.
//
//go:embed page.css
var CSS string
