//go:build !cheap_gomem

package cheap

import (
	"testing"

	"github.com/cheapgo/cheap/internal/osmem"
	"github.com/cheapgo/cheap/internal/sizeclass"
	"github.com/cheapgo/cheap/internal/span"
)

func init() {
	residentSpans = func(t *testing.T, h *Heap) (bytes int64) {
		span.Each(h.id, &h.regions, func(s *span.Span) {
			if c := s.LoadTag() & span.KindMask; c < sizeclass.Count {
				bytes += int64(resident(t, s.Base, osmem.RoundPage(sizeclass.Classes[c].SpanBytes())))
			}
		})
		return bytes
	}
}
