package a

/*
typedef struct image image;
image *image_new(void);
void image_free(image *);
int image_size(image *);
*/
import "C"

import "testing"

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

func global(s string) int {
	theOnly.name = C.CString(s)
	return int(C.peek(theOnly.name))
}
