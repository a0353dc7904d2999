package blackbox

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/cheapgo/cheap/internal/test/testcall"
)

// BenchmarkRecord finds what a record has, and writes it.
func BenchmarkRecord(b *testing.B) {
	f, _, err := create(filepath.Join(b.TempDir(), "box"), aProcess)
	testcall.Must(b, err)
	defer f.close()
	l := &live{root: "/"}
	b.Run("find", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			l.record(time.Now())
		}
	})
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()
		r := l.record(time.Now())
		for b.Loop() {
			testcall.Must(b, f.write(r))
		}
	})
}

// BenchmarkLook reads the charge of the container.
func BenchmarkLook(b *testing.B) {
	l := &live{root: "/"}
	b.ReportAllocs()
	for b.Loop() {
		l.charge(time.Now())
	}
}
