package measure

import "strings"

// otherParts is the time of functions that are in no group.
const otherParts = "other"

// parts names groups of functions. A sample belongs to the innermost function of
// its stack that is in a group: time in lock2 counts for lock2 with every caller,
// and not for the caller.
var parts = []struct {
	name      string
	functions []string // as in profiles; with a * at its end, a prefix
}{
	{"runtime.specialFindSplicePoint", []string{"runtime.(*mspan).specialFindSplicePoint"}},
	{"runtime.lock2 and unlock2", []string{"runtime.lock2", "runtime.unlock2", "runtime.lock2Wake", "runtime.unlock2Wake"}},
	{"runtime.addspecial", []string{"runtime.addspecial"}},
	{"runtime.removespecial", []string{"runtime.removespecial"}},
	{"runtime.cgocall, C included", []string{"runtime.cgocall", "runtime.asmcgocall*", "runtime._ExternalCode"}},
	{"checks of pointers for cgo", []string{"runtime.cgoCheckPointer", "runtime.cgoCheckArg", "runtime.cgoCheckUnknownPointer"}},
	{"Go allocation", []string{"runtime.mallocgc*", "runtime.newobject", "runtime.persistentalloc*", "runtime.(*fixalloc)*"}},
	{"the sweep", []string{"runtime.bgsweep", "runtime.sweepone", "runtime.(*sweepLocked)*", "runtime.deductSweepCredit", "runtime.(*mspan).ensureSwept", "runtime.freeSpecial", "runtime.(*mcentral)*", "runtime.gcSweep"}},
	{"marking", []string{"runtime.gcBgMarkWorker*", "runtime.gcDrain*", "runtime.gcAssist*", "runtime.markroot*", "runtime.wbBufFlush*", "runtime.gcMark*"}},
	{"start and end of collections", []string{"runtime.gcStart*", "runtime.GC", "runtime.stopTheWorld*", "runtime.startTheWorld*"}},
	{"running finalizers and cleanups", []string{"runtime.runFinalizers", "runtime.runFinqueue", "runtime.runfinq", "runtime.createfing", "runtime.(*cleanupQueue)*", "runtime.runCleanups", "runtime.queuefinalizer", "runtime.(*cleanupBlock)*"}},
	{"runtime.SetFinalizer", []string{"runtime.SetFinalizer*", "runtime.addfinalizer"}},
	{"runtime.AddCleanup", []string{"runtime.AddCleanup*", "runtime.addCleanup*"}},
	{"runtime.deferreturn", []string{"runtime.deferreturn", "runtime.deferproc*"}},
	{"the scheduler", []string{"runtime.schedule", "runtime.findRunnable", "runtime.mcall", "runtime.park_m", "runtime.mstart*", "runtime.goready", "runtime.sysmon", "runtime.ready*", "runtime.wakep", "runtime.gopark"}},
	{"package own", []string{"github.com/cheapgo/cheap/own.*"}},
	{"package cheap", []string{"github.com/cheapgo/cheap.*"}},
	{"the loop", []string{"github.com/cheapgo/cheap/lab/*"}},
}

// part returns the group that a stack belongs to.
func part(stack []string) string {
	for _, function := range stack {
		for _, p := range parts {
			for _, f := range p.functions {
				if head, many := strings.CutSuffix(f, "*"); function == head || many && strings.HasPrefix(function, head) {
					return p.name
				}
			}
		}
	}
	return otherParts
}
