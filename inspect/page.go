package inspect

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"github.com/cheapgo/cheap/internal/page/figure"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string
)

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// A page is what does not change from request to request. The figures are not in it: its script
// reads them, at first and from then on in the same way.
type page struct {
	Program  string
	Pprof    string
	Style    template.CSS
	Script   template.JS
	Sections []pageSection
	Links    []link // these two are found out for each request

	policy string // the Content-Security-Policy
}

// A pageSection is the frame of the tables that answer a question.
type pageSection struct {
	ID, Short, Title string
	Tables           []pageTable
}

// A pageTable is the frame of a table.
type pageTable struct {
	Name, Title, About string
}

// A link is another address below that of the page.
type link struct {
	Name, Title string
	serve       http.HandlerFunc
}

// links are what the package can show beside its tables.
var links = []link{
	{"heap", "blocks of heaps by stack, for go tool pprof", profileOf("heap", WriteHeap)},
	{"lifetimes", "how long blocks live, by stack, for go tool pprof", profileOf("lifetimes", WriteLifetimes)},
	{"leaks", "open owners by stack, after a collection, for go tool pprof", ServeLeaks},
	{"where", "the accounts and stacks that hold the most, as text", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, Where(10).String()) // an error is that of a reader who has gone
	}},
	{"suspects", "open owners by stack, as text", ServeSuspects},
}

// profileOf serves a profile as a file for go tool pprof.
func profileOf(name string, write func(io.Writer) error) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		sendProfile(w, name, &b)
	}
}

func sendProfile(w http.ResponseWriter, name string, b *bytes.Buffer) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="cheap-`+name+`.pb.gz"`)
	_, _ = b.WriteTo(w) // an error is that of a reader who has gone
}

func newPage(o Options) *page {
	style := figure.CSS + pageCSS
	p := &page{
		Program: programOf(o),
		Pprof:   cmp.Or(o.Pprof, "/debug/pprof/"),
		Style:   template.CSS(style),
		Script:  template.JS(pageJS),
		policy: "default-src 'none'; script-src " + hash(pageJS) + "; style-src " + hash(style) +
			"; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}
	return p
}

// questions are what the page answers, in its order. A table that a program does not have is left out.
var questions = []struct {
	id, short, title string
	tables           []string
}{
	{"for", "What for", "What is it for?", []string{"resident", "process", "threads", "mappings"}},
	{"who", "Who", "Who made it?", []string{"suspects", "pools", "accounts"}},
	{"collector", "Collector", "What does the collector do?", []string{"pace", "caches"}},
	{"c", "C", "What does C hold?", []string{"growth", "libraries", "cmem"}},
	{"details", "Heaps", "Details of heaps", []string{"heaps", "classes", "totals"}},
}

// pageSections returns the frames of the sections, without those that have no table.
func pageSections() (list []pageSection) {
	for _, q := range questions {
		s := pageSection{ID: q.id, Short: q.short, Title: q.title}
		for _, name := range q.tables {
			if t, ok := pageTableOf(name); ok {
				s.Tables = append(s.Tables, t)
			}
		}
		if len(s.Tables) > 0 {
			list = append(list, s)
		}
	}
	return list
}

// pageTableOf returns the frame of a table, and whether the program has it.
func pageTableOf(name string) (t pageTable, ok bool) {
	switch name {
	case "mappings":
		r := mappingsFrame()
		return pageTable{r.Name, r.Title, r.About}, true
	case "suspects":
		return pageTable{name, "Owners by the line that made them", "Which stacks have made the owners that are open, and owners that the collector had to release. Of a pool that records a part of its owners the figures are estimates. They are read every ten seconds."}, true
	case "growth":
		has, _ := cmemState()
		return pageTable{name, "Stacks of C that keep growing", "Stacks whose bytes in use have grown in each of the last six intervals, by more than the error of the estimate. What a program fills when it starts grows, too."}, has
	}
	for _, t := range tableSpecs {
		if t.name == name {
			has, _ := t.has()
			return pageTable{t.name, t.title, t.about}, has
		}
	}
	panic("no table " + name)
}

// hash is how a policy names an element that may run or apply, by what stands between its tags.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func programOf(o Options) string { return cmp.Or(o.Title, filepath.Base(os.Args[0])) }

// write writes the page.
func (p *page) write(w http.ResponseWriter) {
	var b bytes.Buffer
	now := *p
	now.Sections, now.Links = pageSections(), allLinks()
	if err := pageTemplate.Execute(&b, now); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = b.WriteTo(w)
}
