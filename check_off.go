//go:build !cheap_check

package cheap

import "github.com/cheapgo/cheap/internal/span"

// checking says whether free memory is filled with a pattern, which is verified
// before the memory is handed out again.
const checking = false

func fillFree(p, n uintptr)                       {}
func fillSpan(s *span.Span)                       {}
func mustBeFilled(op string, block, p, n uintptr) {}
func mustBeFilledTail(p, from uintptr)            {}
func mustBeAligned(op string, p uintptr)          {}

func unfilled(p, n uintptr, was blockState) (from, to uintptr) { return 0, 0 }

func (h *Heap) fillFreeBlock(s *span.Span, p uintptr)       {}
func (h *Heap) lookAtFree(s *span.Span)                     {}
func (h *Heap) lookAtUncarved(p, size uintptr)              {}
func (h *Heap) mustBeFilledBlock(p uintptr, was blockState) {}
