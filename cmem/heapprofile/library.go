package heapprofile

import (
	"path/filepath"
	"slices"
	"strings"
)

// AskedByGo is the name of the library of blocks that Go code has asked for by itself.
const AskedByGo = "C.malloc, C.CString, C.CBytes"

// Library says to which library the bytes of a site belong: that of the innermost function of C
// that does not allocate for others.
func (p *Process) Library(s *Site) string {
	if s.Library != "" {
		return s.Library
	}
	last := ""
	if len(s.C) == 1 && p.inMalloc(s.Go) {
		return AskedByGo
	}
	for _, pc := range s.C {
		m := mappingOf(p.Mappings, uint64(pc-1))
		if pc == 0 {
			return "a library that was unloaded"
		}
		if m == nil || m.File == "" {
			continue
		}
		name := filepath.Base(m.File)
		function := m.function(uint64(pc - 1))
		if strings.HasPrefix(function, "_cgo_") && strings.Contains(function, "_Cfunc__Cmalloc") {
			return AskedByGo
		}
		last = name
		if !allocatesForOthers(name, function) {
			return name
		}
	}
	if last == "" {
		return "unknown"
	}
	return last
}

// inMalloc reports whether the innermost function of the binding is that which cgo makes for
// C.malloc, C.CString and C.CBytes: it has a name in a program without symbols, too.
func (p *Process) inMalloc(goPart []uintptr) bool {
	for _, pc := range goPart {
		if pc < lowestCode {
			return false // C has called
		}
		for _, f := range p.Frames(pc) {
			if !isSwitch(f.Function) {
				return strings.HasSuffix(f.Function, "._cgo_cmalloc")
			}
		}
	}
	return false
}

// isSwitch reports whether a function is a part of each call of C, or of each call of Go by C.
func isSwitch(function string) bool {
	switch function {
	case "runtime.cgocall", "runtime.asmcgocall", "runtime.cgocallback", "runtime.cgocallbackg", "runtime.cgocallbackg1":
		return true
	}
	return false
}

// The libraries whose blocks belong to their caller, by the beginning of the file's name.
var allocatingLibraries = []string{"libc.so", "libc-", "libc.musl", "ld-linux", "ld-musl", "libstdc++.so", "libc++.so", "libc++abi.so"}

// The functions that allocate for their caller, by their beginning.
var allocatingFunctions = []string{
	"g_malloc", "g_try_malloc", "g_realloc", "g_try_realloc", "g_memdup", "g_strdup", "g_slice_", "g_aligned_alloc", // GLib
	"CRYPTO_malloc", "CRYPTO_zalloc", "CRYPTO_realloc", "CRYPTO_memdup", "CRYPTO_strdup", // OpenSSL
	"av_malloc", "av_calloc", "av_realloc", "av_fast_", // FFmpeg
	"_Znw", "_Zna", // operator new
	"xmalloc", "xcalloc", "xrealloc", "xstrdup",
}

func allocatesForOthers(library, function string) bool {
	hasPrefix := func(s string) func(string) bool { return func(p string) bool { return strings.HasPrefix(s, p) } }
	return slices.ContainsFunc(allocatingLibraries, hasPrefix(library)) || slices.ContainsFunc(allocatingFunctions, hasPrefix(function))
}
