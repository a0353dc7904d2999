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

	"github.com/cheapgo/cheap/internal/figure"
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
	Program string
	Pprof   string
	Style   template.CSS
	Script  template.JS
	Tables  []pageTable
	Links   []link // these two are found out for each request

	policy string // the Content-Security-Policy
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
	{"heap", "heap profile", profileOf("heap", WriteHeap)},
	{"lifetimes", "lifetimes", profileOf("lifetimes", WriteLifetimes)},
	{"where", "where it went", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, Where(10).String()) // an error is that of a reader who has gone
	}},
	{"suspects", "leak suspects as text", ServeSuspects},
	{"leaks", "leak profile", ServeLeaks},
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

// pageTables returns the frames of the tables, in the order of the page.
func pageTables() (list []pageTable) {
	for _, name := range []string{"resident", "process", "mappings", "cmem", "libraries", "heaps", "accounts", "pools", "classes", "pace", "totals"} {
		if t, ok := pageTableOf(name); ok {
			list = append(list, t)
		}
	}
	return list
}

func pageTableOf(name string) (t pageTable, ok bool) {
	for _, t := range tableSpecs {
		if t.name == name {
			has, _ := t.has()
			return pageTable{t.name, t.title, t.about}, has
		}
	}
	r := mappingsFrame()
	return pageTable{r.Name, r.Title, r.About}, true
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
	now.Tables, now.Links = pageTables(), allLinks()
	if err := pageTemplate.Execute(&b, now); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = b.WriteTo(w)
}
