package explain

import (
	"os"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// getterProgram calls functions that read a field of a type that Go knows, of one that is opaque, and one
// that does more.
var getterProgram = map[string]string{
	"go.mod": "module example.com/prog\n\ngo 1.24\n",
	"bind/library.h": `
struct item { long key; int number; };
struct opaque;
int item_number(struct item *);
int opaque_number(struct opaque *);
long item_sum(struct item *);
struct opaque *make(void);
`,
	"bind/library.c": `#include "library.h"
struct opaque { int number; } only;
int item_number(struct item *p) { return p->number; }
int opaque_number(struct opaque *p) { return p->number; }
long item_sum(struct item *p) { return p->key + p->number; }
struct opaque *make(void) { return &only; }
`,
	"bind/bind.go": `package bind

// #include "library.h"
// static inline long item_key(struct item *p) { return p->key; }
import "C"

type Item struct{ p *C.struct_item }

func New() Item { return Item{&C.struct_item{key: 1, number: 2}} }

func (i Item) Number() int { return int(C.item_number(i.p)) }
func (i Item) Key() int    { return int(C.item_key(i.p)) }
func (i Item) Sum() int    { return int(C.item_sum(i.p)) }

var other = C.make()

func Other() int { return int(C.opaque_number(other)) }
`,
	"main.go": `package main

import "example.com/prog/bind"

var sink int

func main() {
	i := bind.New()
	for range 5_000_000 {
		sink += i.Number() + i.Key() + i.Sum() + bind.Other()
	}
}
`,
}

// TestGetters has a program whose fields are advised with their names, and in its loop, but not where Go
// does not know the type, and not without the program.
func TestGetters(t *testing.T) {
	if !hasCgo(t) || !canTellWhere {
		return // machine code of other systems and processors is not read
	}
	program := built(t, aFolder(t, getterProgram))
	p, _ := profileOf(t, program)
	fields := func(p *profile.Profile) (list []FieldCall, sketch string) {
		t.Helper()
		for _, a := range New(p, "test", Calibration{CallNs: 40}, Stored, program.Exact).Advice {
			list = append(list, a.Fields...)
			sketch += a.Sketch
			if a.Fields == nil {
				continue
			}
			checkLink(t, a.Link)
			if a.Now <= 0 || a.Expected != 0 || !strings.Contains(a.Site, "C.item_key") || !strings.Contains(a.Text, "C.item_number reads number") {
				t.Errorf("%+v", a)
			}
		}
		return list, sketch
	}
	got, sketch := fields(p)
	want := map[FieldCall]bool{{"C.item_key", "C.struct_item", "key", false}: true, {"C.item_number", "C.struct_item", "number", false}: true}
	for _, f := range got {
		if !want[f] {
			t.Errorf("%+v is advised", f)
		}
		delete(want, f)
	}
	if len(want) > 0 || !strings.Contains(sketch, "item_number(…); // bind.Item.Number, once a round, reads number\n") ||
		!strings.Contains(sketch, "item_sum(…); // bind.Item.Sum, once a round\n") {
		t.Errorf("%v is not advised; the loop is\n%s", want, sketch)
	}
	p.Mapping[0].BuildID = "1234"
	if got, _ := fields(p); got != nil {
		t.Errorf("another program, and %+v", got)
	}
	p.Mapping[0].BuildID = ""
	if err := os.Remove(program.Path); err != nil {
		t.Fatal(err)
	}
	if got, _ := fields(p); got != nil {
		t.Errorf("no program, and %+v", got)
	}
}
