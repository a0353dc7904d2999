package batch

import "time"

// A step is the progress of a bundle. It is right also after a function of the
// program has ended the goroutine, or has panicked.
type step uint8

const (
	toRelease step = iota
	released       // or in the release function
	reported       // errors, or in OnReleaseError
	told           // what the collector found, or in OnCollect
)

// A failure is an error that the release of some entries has returned.
type failure struct {
	spec  *Spec
	count int
	err   error
}

// mostShare is how many entries a call of the release function has at most, where the time is
// bounded: it may become slow all at once.
const mostShare = 16

// A limit is when a Run leaves the rest to the next one.
type limit struct {
	until time.Time // zero: it leaves nothing
	now   func() time.Time
}

func (l *limit) bounded() bool { return !l.until.IsZero() }

func (l *limit) over() bool { return l.bounded() && !l.now().Before(l.until) }

// Run does what is left of the jobs: it releases what they have, tells OnReleaseError of
// errors, and OnCollect of what the collector has found. It reports false if something is
// left at the time until, which is zero if there is no such time. Then the next Run, on any
// goroutine, goes on with the same jobs.
//
// A function of the program may end the goroutine. The next Run goes on behind it. If it
// panics, the panic reaches the caller, and the next Run goes on behind it as well.
func (b *Bundle) Run(jobs []Job, until time.Time, now func() time.Time) (done bool) {
	l := limit{until, now}
	if b.step == toRelease && !b.release(jobs, &l) {
		return false
	}
	if b.step == released {
		b.step = reported
	}
	// OnReleaseError and OnCollect may end the goroutine, and each call may take long.
	for len(b.errs) > 0 {
		f := b.errs[0]
		b.errs = b.errs[1:]
		f.spec.Failed(f.count, f.err)
		if len(b.errs)+len(b.parts) > 0 && l.over() {
			return false
		}
	}
	b.step = told
	tells := jobs[0].Batch.Spec.OnCollect != nil
	for len(b.parts) > 0 {
		b.tell()
		if tells && len(b.parts) > 0 && l.over() {
			return false
		}
	}
	b.reset()
	return true
}

// Function names the function of the program that Run is in.
func (b *Bundle) Function() string {
	return [...]string{toRelease: "the release function", released: "the release function", reported: "Options.OnReleaseError", told: "Options.OnCollect"}[b.step]
}

// release releases what the jobs have left, and the parents that waited for it. Parents in
// other pools are queued there. It reports false if the time is over, and something is left.
func (b *Bundle) release(jobs []Job, l *limit) bool {
	j := jobs[0]
	if !b.begun {
		b.begin(jobs)
	}
	var o Outcome
	switch {
	case j.Entry&Lost == 0:
		b.step = released
		b.addApart(j.Batch, j.Entry)
		o = j.Batch.Release(j.Entry)
		b.note(j.Batch.Spec, 1, o.Err)
	case j.Size == 0:
		b.step = released
		picked := b.add(j)
		o = picked.Release()
		b.note(j.Batch.Spec, picked.K, o.Err)
	default:
		share := 0
		for begin := l.now(); b.step == toRelease; {
			n := b.left()
			if l.bounded() {
				share = min(max(2*share, 1), mostShare)
				n = min(share, n)
			}
			if n == b.left() {
				b.step = released
			}
			o = b.releaseSome(n)
			b.note(j.Batch.Spec, n, o.Err)
			now := l.now()
			b.Count += n
			b.Took += now.Sub(begin)
			begin = now
			if b.step == toRelease && l.bounded() && !now.Before(l.until) {
				return false
			}
		}
	}
	for o.Parent != nil && o.Parent.Spec == j.Batch.Spec && !l.over() {
		o = o.Parent.Release(o.Index)
		b.note(j.Batch.Spec, 1, o.Err)
	}
	if o.Parent != nil {
		o.Parent.Spec.Releaser.Dead(JobOf(o.Parent, o.Index))
	}
	return true
}

// begin claims the entries of jobs with a Size.
func (b *Bundle) begin(jobs []Job) {
	b.begun, b.Count, b.Took = true, 0, 0
	if jobs[0].Size == 0 {
		return
	}
	room := 0
	for _, j := range jobs {
		room += int(j.Size)
	}
	b.grow(room)
	for _, j := range jobs {
		b.add(j)
	}
}

// note keeps an error until all is released.
func (b *Bundle) note(k *Spec, count int, err error) {
	if err != nil {
		b.errs = append(b.errs, failure{k, count, err})
	}
}
