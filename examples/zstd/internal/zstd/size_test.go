//go:build cgo && zstd

package zstd

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/pace"
)

// TestSizes: what own and pace know is what C has allocated.
func TestSizes(t *testing.T) {
	var ws []*Writer
	var rs []*Reader
	for _, level := range []int{1, 3, 19} {
		var frame bytes.Buffer
		w, err := NewWriter(&frame, level)
		testcall.Must(t, err)
		if known, c := compressors.Stats().Bytes, InUse(); known < c {
			t.Errorf("level %d, before a Write: own knows %d bytes, C has %d", level, known, c)
		}
		if _, err := w.Write(text(300_000)); err != nil {
			t.Fatal(err)
		}
		testcall.Must(t, w.Flush())
		r, err := NewReader(&frame)
		testcall.Must(t, err)
		if _, err := io.CopyN(io.Discard, r, 300_000); err != nil {
			t.Fatal(err)
		}
		ws, rs = append(ws, w), append(rs, r)
		if known, c := compressors.Stats().Bytes+decompressors.Stats().Bytes, InUse(); known != c {
			t.Errorf("level %d: own knows %d bytes, C has %d", level, known, c)
		}
	}
	for i := range ws {
		testcall.Want(t, errors.Join(ws[i].Close(), rs[i].Close()))
	}
	if InUse() != 0 {
		t.Errorf("%d bytes are in use, and all was closed", InUse())
	}
}

// peak makes streams, forgets them, and returns the most bytes that C had in use, and the
// bytes that it would have had in use with all of them.
func peak(t *testing.T, stream func() error) (most, all int64) {
	const streams = 250
	testcall.Aside(func() {
		for i := range streams {
			if err := stream(); err != nil {
				t.Error(err)
				return
			}
			if i == 0 {
				all = streams * InUse()
			}
			most = max(most, InUse())
		}
	})
	settled(t)
	return most, all
}

// TestPace makes 250 streams of some megabytes and no Go memory. The collector counts them
// with package pace only.
func TestPace(t *testing.T) {
	frame, err := Compress(text(3_000_000), 3)
	testcall.Must(t, err)
	for name, stream := range map[string]func() error{
		"Writer": func() error {
			z, err := NewWriter(io.Discard, 3)
			if err == nil {
				_, err = z.Write([]byte("forgotten"))
			}
			return err
		},
		"Reader": func() error { // it begins small, and gets a window
			z, err := NewReader(bytes.NewReader(frame))
			if err == nil {
				_, err = z.Read(make([]byte, 10))
			}
			return err
		},
	} {
		settled(t)
		runtime.GC() // the next one is after 4 MB
		without, all := peak(t, stream)
		testcall.Must(t, pace.Start(pace.Options{}))
		with, _ := peak(t, stream)
		pace.Stop()
		t.Logf("%s: of %d bytes at most %d without pace, and %d with it", name, all, without, with)
		if without < all*3/4 {
			t.Errorf("%s: at most %d of %d bytes in use without pace, want most: then what is pace for?", name, without, all)
		}
		// Usually a thirtieth. The rest is for the race detector and machines with other work.
		if with > all/2 {
			t.Errorf("%s: at most %d of %d bytes in use with pace, want at most half", name, with, all)
		}
	}
}

// TestLimit keeps streams until there is no room.
func TestLimit(t *testing.T) {
	const limit = 512 << 20 // of which the Go runtime has some
	settled(t)
	testcall.Must(t, pace.Start(pace.Options{Limit: limit}))
	defer pace.Stop()
	var kept []*Writer
	for {
		z, err := NewWriter(io.Discard, 3)
		if err != nil {
			if !errors.Is(err, cheap.ErrLimit) || len(kept) < 20 {
				t.Errorf("error %v after %d streams, want %v", err, len(kept), cheap.ErrLimit)
			}
			break
		}
		if _, err := z.Write([]byte("kept")); err != nil {
			t.Fatal(err)
		}
		if kept = append(kept, z); InUse() > limit {
			t.Fatalf("%d bytes in use, over the limit", InUse())
		}
	}
	for _, z := range kept {
		testcall.Want(t, z.Close())
	}
	settled(t)
}
