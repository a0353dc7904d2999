// Package charts has the scripts by which pages draw: Apache ECharts, and a flame graph that it draws.
// A program with package inspect is larger by 350 KiB for these and its page of the C heap.
package charts

import (
	"compress/gzip"
	_ "embed"
	"io"
	"strings"
	"sync"
)

var (
	//go:embed echarts/echarts.min.js.gz
	compressed string
	//go:embed flame.js
	flameJS string
	//go:embed flame.css
	flameCSS string
)

// Library returns the script of Apache ECharts. echarts/README.md says how it was made.
var Library = sync.OnceValue(func() string {
	r, err := gzip.NewReader(strings.NewReader(compressed))
	if err == nil {
		var text []byte
		if text, err = io.ReadAll(r); err == nil {
			return string(text)
		}
	}
	panic(err) // not possible: a test reads it
})

// Flame returns the script of flame graphs. It comes behind that of the Library.
func Flame() string { return flameJS }

// CSS returns the style of pages with a flame graph: their answer, keys of colors, and the graph.
func CSS() string { return flameCSS }

// Policy is what pages may load, for the header Content-Security-Policy: nothing but themselves.
const Policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"

// Head is the template "head" of html/template: a page up to its title.
const Head = `{{define "head"}}<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="` + Policy + `">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">{{end}}`
