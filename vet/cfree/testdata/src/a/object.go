package a

/*
typedef struct image image;
typedef struct album { image *image; } album;
image *image_new(void); image *Image_Get_Main(void); image *XIMGGetMain(void); image *image_current(album *); image *album_lookup(album *, int);
void image_free(image *);
int image_size(image *);
int image_put(image *);
int peek(char *);
void album_push(album *, image *);
void album_look(album *, image *);
*/
import "C"

import (
	"errors"
	"testing"
	"unsafe"
)

// An image is released by Close.
type image struct{ p *C.image }

func newImage() *image { return &image{C.image_new()} } // want newImage:"results\\[0\\]"

func (i *image) Close() error { // want Close:"releases" Close:"params\\[0\\]"
	C.image_free(i.p)
	return nil
}

func (i *image) size() int { return int(C.image_size(i.p)) }

func forgotten() int {
	i := newImage() // want `the result of newImage is never freed`
	return i.size()
}

func forgottenOnPath(n int) int {
	i := newImage() // want `the result of newImage is not freed on the way to the return`
	if i.size() > n {
		return n
	}
	i.Close()
	return 0
}

// C has made nothing where it lends, and where a test fails that wants an error.

func lent() *image { return &image{C.Image_Get_Main()} }

func lentToo(a *C.album) []*image { return []*image{main(), current(a)} }

func main() *image { return &image{C.XIMGGetMain()} }

func current(a *C.album) *image { return &image{C.image_current(a)} }

func lookup(a *C.album) *image { return &image{C.album_lookup(a, 1)} }

func onlyLooks(a *C.album) int { return main().size() + current(a).size() + lookup(a).size() }

func sized(n int) (*image, error) { // want sized:"results\\[0\\]"
	if n < 0 {
		return nil, errors.New("size")
	}
	return newImage(), nil
}

func wantsError(t *testing.T) int {
	i, err := sized(-1)
	if err == nil {
		t.Errorf("a size of -1")
	}
	return lent().size() + i.size()
}

func wantsNoError() int {
	i, err := sized(1) // want `the result of sized is never freed`
	if err == nil {
		println("made")
	}
	return i.size()
}

type album struct{ p *C.album }

func (a *album) push(i *image) { C.album_push(a.p, i.p) }
func (a *album) look(i *image) { C.album_look(a.p, i.p) }

func forgottenBeside(a *album) {
	i, j := newImage(), newImage() // want `the result of newImage is never freed`
	a.push(i)
	a.look(j)
}

func closed() int {
	i := newImage()
	defer i.Close()
	return i.size()
}

// The caller of these has nothing to close.

func ofTest(t *testing.T) *image {
	i := &image{C.image_new()}
	t.Cleanup(func() { i.Close() })
	return i
}

func ofTestMethod(t *testing.T) *image {
	i := &image{p: C.image_new()}
	t.Cleanup(i.close)
	return i
}

func (i *image) close() { i.Close() }

var images = map[string]*image{}

func ofCache(name string) *image {
	i := &image{C.image_new()}
	images[name] = i
	return i
}

func users(t *testing.T) int {
	i, j, k := ofTest(t), ofTestMethod(t), ofCache("name")
	return i.size() + j.size() + k.size()
}

// Methods as values, and as functions of the receiver.

func value() int {
	i := newImage()
	done := i.Close
	defer done()
	return i.size()
}

func valueOfResult() {
	done := newImage().Close
	done()
}

func expression() int {
	i := newImage()
	defer (*image).Close(i)
	return i.size()
}

var theOnly struct{ name *C.char }

func inGlobal(s string) int {
	theOnly.name = C.CString(s)
	return int(C.peek(theOnly.name))
}

// A struct that is copied out of its pointer has what the pointer had.

type pair struct {
	image
	n int
}

func copied() pair {
	h := pair{*newImage(), 1}
	return h
}

func copiedAndClosed() int {
	i := *newImage()
	defer i.Close()
	return i.size()
}

func copiedInto(to *image) { *to = *newImage() }

func copiedIntoList(to []image) {
	i := newImage()
	to[0] = *i
}

func copiedAndReturned() image { return *newImage() } // want copiedAndReturned:"results\\[0\\]"

func copiedAndForgotten() int {
	i := *newImage() // want `the result of newImage is never freed`
	return i.size()
}

func copiedIntoPair() int {
	h := pair{*newImage(), 1}
	defer h.Close()
	return h.size()
}

// Other structs have it in a field that has a name.

type frame struct{ img image }

func copiedIntoFrame() frame {
	f := frame{img: *newImage()}
	return f
}

func (f *frame) close() { f.img.Close() }

// A closure that is returned.

func closureThatLooks() func() int {
	i := newImage() // want `the result of newImage is never freed`
	return func() int { return i.size() }
}

func closureThatCloses() func() {
	i := newImage()
	return func() { i.Close() }
}

func closureThatReturns() func() *image {
	i := newImage()
	return func() *image { return i }
}

func closureOfString(s string) func() int {
	cs := C.CString(s) // want `the result of C.CString is never freed`
	return func() int { return int(C.peek(cs)) }
}

func closureLater(s string) func() int {
	cs := C.CString(s) // want `the result of C.CString is never freed`
	f := func() int { return int(C.peek(cs)) }
	return f
}

// What a test wants to fail makes nothing.
func wantsErrorHere(t *testing.T) {
	i, err := sized(1)
	assert.T(t, err == nil)
	i.Close()
	i, err = sized(-1)
	assert.T(t, err != nil)
	_, err = sized(-1)
	i, err = sized(2) // want `the result of sized is not freed on the way to the return`
	assert.T(t, err == nil)
}

// An object without its pointer has nothing.
func noPointer(n int) *image { // want noPointer:"results\\[0\\]"
	i := newImage()
	if i.p == nil {
		return nil
	}
	if n == 0 {
		return i
	}
	i.Close()
	return nil
}

func somePointer() *image {
	i := newImage() // want `the result of newImage is not freed on the way to the return`
	if i.p != nil {
		return nil
	}
	i.Close()
	return nil
}

type options struct {
	image *C.image
	n     int
}

// What has the pointer of an object may release it.
func withPointer() options {
	i := newImage()
	return options{image: i.p}
}

func withNumber() options {
	i := newImage() // want `the result of newImage is never freed`
	return options{n: i.size()}
}

type panel struct{ part *C.album }

func (f *panel) set(i *image) { f.part.image = i.p }

func framed(f *panel) {
	f.set(newImage())
	f.look(newImage()) // want `the result of newImage is never freed`
}

func (f *panel) look(i *image) { C.album_look(f.part, i.p) }

var assert checks

type checks struct{}

func (checks) T(t *testing.T, ok bool) { // want T:"params\\[0 2 0\\]"
	if !ok {
		t.FailNow()
	}
}

// A function of the package that is deferred with an object alone releases it, whatever its name.
func put(i *image) bool { return C.image_put(i.p) == 1 }

func deferredPut() int {
	i := newImage()
	defer put(i)
	return i.size()
}

func calledPut() int {
	i := newImage() // want `the result of newImage is never freed`
	put(i)
	return i.size()
}

// The pointer of an object goes to what releases it.

func byVariable() {
	i := newImage()
	p := i.p
	C.image_size(p)
	C.image_free(p)
}

func byFunction() { release(newImage().p) }

func byList() []*C.image {
	i, j := newImage(), newImage() // want `the result of newImage is never freed`
	C.image_size(j.p)
	return append([]*C.image(nil), i.p)
}

func release(p *C.image) { C.image_free(p) }

func onlySized() C.int {
	i := newImage() // want `the result of newImage is never freed`
	p := i.p
	return C.image_size(p)
}

// A deferred method that gets the address of a variable releases what that has at the end.

type picture struct{ p *C.image }

func newPicture() picture { return picture{C.image_new()} } // want newPicture:"results\\[0\\]"

func (p *picture) Close() { C.image_free(p.p) } // want Close:"releases" Close:"params\\[0\\]"

func deferredLater() C.int {
	p := newPicture()
	defer p.Close()
	n := C.image_size(p.p)
	p = newPicture()
	return n + C.image_size(p.p)
}

// A list of objects is walked.
type link struct {
	p    *C.image
	next *link
	id   uintptr
}

func newLink() *link { return &link{p: C.image_new()} } // want newLink:"results\\[0\\]"

func (l *link) Close() { C.image_free(l.p) } // want Close:"releases" Close:"params\\[0\\]"

func walk(head *link) (n int) {
	for l := head; l != nil; l = l.next {
		n++
	}
	return n
}

func walkOwn() (n int) {
	l := newLink()
	for ; l != nil; l = l.next {
		l.Close()
		n++
	}
	return n
}

// Another field than the one that is released says nothing.
func onlyID() uintptr {
	l := newLink() // want `the result of newLink is never freed`
	return l.id
}

// The leak behind an object without its pointer, and a test that wants no error.
func openLink(n int) (*link, error) { // want openLink:"results\\[0\\]"
	l := newLink() // want `the result of newLink is not freed on the way to the return`
	if l.p == nil {
		return nil, errors.New("memory")
	}
	if n < 0 {
		return nil, errors.New("n")
	}
	return l, nil
}

func assertsNone(t *testing.T) int {
	l, err := openLink(1) // want `the result of openLink is never freed`
	assert.False(t, err != nil)
	return int(l.id)
}

func (checks) False(t *testing.T, bad bool) { // want False:"params\\[0 2 0\\]"
	if bad {
		t.FailNow()
	}
}

// A function that is deferred with an object, and only looks.
func deferredLook() C.int {
	l := newLink() // want `the result of newLink is never freed`
	defer look(l)
	return C.image_size(l.p)
}

func look(l *link) { println(l.id) }

func walkAll() {
	l := newLink()
	for e := l; e != nil; e = e.next {
		e.Close()
	}
}

// An object whose pointer leads to the next one.
type chain struct{ p unsafe.Pointer }

func (c *chain) Close() { C.image_free((*C.image)(c.p)) } // want Close:"releases" Close:"params\\[0\\]"

func chained(head *chain) (n int) {
	for c := head; c != nil; c = (*chain)(c.p) {
		n++
	}
	return n
}
