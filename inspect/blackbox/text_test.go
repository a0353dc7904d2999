package blackbox

import (
	"strings"
	"testing"
	"time"
)

// TestText writes a report in which each field is set, and one in which none is.
func TestText(t *testing.T) {
	r := &Report{Process: aProcess, State: Ended, Last: aRecord(aProcess.Started.Add(90 * time.Second)), Damaged: 1, KilledSince: 1}
	r.Last.Number = 1234
	r.Last.Verdict += "\x1b[2J"
	const want = `server, process 42, go1.26 linux/amd64
  started  2026-09-21 14:13:20.000 UTC
  ended    without Stop: it was killed, it has crashed, or it has called os.Exit
           the kernel has killed 1 process of its cgroup for want of memory since the record
           while it wrote a record, or the file was cut short: that record is lost
  record   1,234 of 2026-09-21 14:14:50.000 UTC, 1m30s after the start

C is in use and grows?[2J
  look at main.find

container
  190 MiB of 200 MiB charged, 3.00 MiB of it cached files, 1 B swapped out, slowed down from 195 MiB on, limit met 4 times, 1 process killed, 2.5% of the last 10 s waited for memory

resident, 192 MiB in all, and 5 B swapped out
   170 MiB   89%  C, in use, and 5 B swapped out
  10.0 MiB    5%  Go heap, in use

C in use, by library
   160 MiB  libsqlite3.so.0 (40,000)

pools
  4.00 MiB  Regexp (12)

heaps
  2.00 MiB  pages (1)

C in use, by stack
   150 MiB  libsqlite3.so.0
            sqlite3Malloc
            main.find guestbook.go:119

open owners, by the stack that made them
  4.00 MiB  Regexp
            main.compile first.go:9

blocks of heaps, by stack
  2.00 MiB
            main.page first.go:20

no mappings
`
	check := func(want string) {
		t.Helper()
		var b strings.Builder
		if err := r.WriteText(&b); err != nil || b.String() != want {
			t.Errorf("%v\n%s\nwant\n%s", err, b.String(), want)
		}
	}
	check(want)
	const line = `190 MiB of 200 MiB charged, 3.00 MiB of it cached files, 1 B swapped out, slowed down from 195 MiB on, limit met 4 times, 1 process killed, 2.5% of the last 10 s waited for memory: C, in use 170 MiB, Go heap, in use 10.0 MiB, library libsqlite3.so.0 160 MiB, pool Regexp 4.00 MiB, heap pages 2.00 MiB; owners of Regexp were made by main.compile first.go:9; C in use was allocated by main.find guestbook.go:119; C is in use and grows?[2J: look at main.find`
	if got := r.Last.Line(); got != line {
		t.Errorf("%s, want %s", got, line)
	}

	r = &Report{Process: aProcess, State: Stopped}
	check(`server, process 42, go1.26 linux/amd64
  started  2026-09-21 14:13:20.000 UTC
  ended    in order: it has called Stop
  record   none was written
`)
	r.Damaged = 2
	check(`server, process 42, go1.26 linux/amd64
  started  2026-09-21 14:13:20.000 UTC
  ended    in order: it has called Stop
           while it wrote a record, or the file was cut short: that record is lost
  record   none is whole
`)
	r.Damaged = 0
	for state, want := range map[State]string{
		Running: "\n  runs     still, or a process that it has forked\n",
		Unknown: "\n  ended    not known: it has not called Stop, and may be running\n",
	} {
		r.State = state
		var b strings.Builder
		if err := r.WriteText(&b); err != nil || !strings.Contains(b.String(), want) {
			t.Errorf("%s has no %s", &b, want)
		}
	}
	r.State, r.Last = Ended, &Record{Container: &Container{Charged: 99 * mib, Cache: mib / 2, Limit: 100 * mib}}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil || !strings.Contains(b.String(), "\n           the container was at its limit: ") || !strings.HasSuffix(b.String(), "\n  99.0 MiB of 100 MiB charged\n") {
		t.Errorf("at the limit: %s", &b)
	}
	r.Last = new(Record)
	if got := r.Last.Line(); got != "" {
		t.Errorf("an empty record says %s", got)
	}
}
