//go:build cgo && linux && !cheap_nocmem && !asan && !msan

package cmem

/*
#include "source/cmem.h"
*/
import "C"

import (
	"context"
	"fmt"
	"math/bits"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"unsafe"

	"github.com/cheapgo/cheap/cmem/heapprofile"
)

// labelsWhy is set when the package is initialized.
var labelsWhy = "the package is not initialized"

func labelsOff() string { return labelsWhy }

// learnLabels finds out where the record of a goroutine has its labels. It sets some on a goroutine of its own, so that
// no other one gets them.
func learnLabels() {
	if labelsWhy = off(); labelsWhy != "" {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		labelsWhy = tryLabels()
	}()
	<-done
}

// tryLabels has labels looked for, says where they were found, and verifies that a sample would have them. It returns why not.
func tryLabels() string {
	found := ^C.uint64_t(0)
	for n := range 3 {
		found &= lookForLabels(n + 1)
	}
	pprof.SetGoroutineLabels(context.Background())
	found &= C.cmem_labels_find(nil, nil, 0)
	if bits.OnesCount64(uint64(found)) != 1 {
		return fmt.Sprintf("labels that were set were found at %d places of a goroutine of %s", bits.OnesCount64(uint64(found)), runtime.Version())
	}
	C.cmem_labels_learned(C.int(bits.TrailingZeros64(uint64(found)) * int(unsafe.Sizeof(uintptr(0)))))
	for n := range 3 {
		text, lengths := setLabels(n)
		var gotText [C.cmem_probe_text]C.char
		var gotLengths [C.cmem_probe_labels]C.uint16_t
		k := C.cmem_labels_now(&gotText[0], &gotLengths[0])
		if !slices.Equal(gotLengths[:k], lengths) || C.GoStringN(&gotText[0], C.int(len(text))) != string(text) {
			C.cmem_labels_learned(0)
			return runtime.Version() + " has other labels than those that are set"
		}
	}
	return ""
}

// lookForLabels sets n labels, and returns at which words of the record of this goroutine they are.
func lookForLabels(n int) C.uint64_t {
	text, lengths := setLabels(n)
	return C.cmem_labels_find((*C.char)(unsafe.Pointer(&text[0])), &lengths[0], C.int(n))
}

// setLabels sets n labels, and returns their text and the lengths of the keys and values. They are in the order of the keys, as
// the runtime has them.
func setLabels(n int) (text []byte, lengths []C.uint16_t) {
	var all []string
	for i := range n {
		for k := range 2 { // of different lengths
			s := fmt.Sprintf("%d of a label of cheap%0*d", i, 3*i+k+n, i)
			all = append(all, s)
			text = append(text, s...)
			lengths = append(lengths, C.uint16_t(len(s)))
		}
	}
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(all...)))
	return text, lengths
}

// labelsOf returns the labels of a set, which C never frees.
func labelsOf(set unsafe.Pointer) (all []heapprofile.Label) {
	if set == nil {
		return nil
	}
	s := (*C.struct_cmem_labels)(set)
	// The pointers to the labels lie behind the set.
	for _, l := range unsafe.Slice((**C.struct_cmem_label)(unsafe.Add(set, unsafe.Sizeof(*s))), int(s.n)) {
		text := (*C.char)(unsafe.Add(unsafe.Pointer(l), C.cmem_label_text))
		all = append(all, heapprofile.Label{
			Key:   validText(text, l.key),
			Value: validText((*C.char)(unsafe.Add(unsafe.Pointer(text), l.key)), l.value),
		})
	}
	return all
}

// validText returns a text without what is not UTF-8, for which other programs would refuse the profile.
func validText(p *C.char, n C.uint16_t) string {
	return strings.ToValidUTF8(C.GoStringN(p, C.int(n)), "\ufffd")
}

// unlearn forgets where labels are. It is for tests.
func unlearn() { C.cmem_labels_learned(0) }
