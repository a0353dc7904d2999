// Package look has the style that the pages of this module have in common: colors, light and
// dark, text and tables, on a phone and on a desk.
package look

import _ "embed"

// CSS is the style. A page adds rules of its own behind it.
//
//go:embed look.css
var CSS string
