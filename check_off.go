//go:build !cheap_check

package cheap

import "github.com/cheapgo/cheap/internal/span"

// checking says whether free memory is filled with a pattern, which is verified
// before the memory is handed out again.
const checking = false

func fillFree(p, n uintptr)                       {}
func isFilled(p, n uintptr) bool                  { return true }
func mustBeFilled(op string, block, p, n uintptr) {}
func mustBeFilledTail(p, from uintptr)            {}

func (h *Heap) fillFreeBlock(s *span.Span, p uintptr)   {}
func (h *Heap) lookAtFree(s *span.Span)                 {}
func (h *Heap) mustBeFilledBlock(p uintptr, fresh bool) {}
