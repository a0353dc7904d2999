package blackbox

import "time"

// When a box looks at the charge of the container, and when it writes a record.
//
// A look reads a file of the kernel, and wakes up the process: a tenth of a millisecond where it sleeps. With
// a limit there are four a second, and up to 1,000 while the charge grows so fast that the limit would
// be met soon.
//
// A record is written
//
//   - Options.Every after the last one, or, while the charge is known and has not changed by a 256th of the
//     limit, after eight times that,
//   - when the charge has changed by a 32nd of the limit since then, or by a 256th where it is near,
//
// but records take one percent of the time at most: a budget fills by that, up to budgetMost, and each
// record takes from it what it has cost. So there is time for many records in the last moments of a
// process, and not for many in a second, and again in the next.
const (
	lookMost  = 250 * time.Millisecond
	lookLeast = time.Millisecond

	changed, changedNear = 32, 256 // parts of the limit

	quietFor = 8 // of Options.Every

	budgetShare = 100
	budgetMost  = 50 * time.Millisecond
)

// A notice is once in noticePause at most, and after the charge has fallen by noticeBelow of the limit.
const (
	noticePause = time.Minute
	noticeBelow = 0.1
)

// A schedule says what is to be done at each look. It reads no clock.
type schedule struct {
	every time.Duration
	near  float64 // share of the limit; above 1 there is no notice

	pause  time.Duration // before the next look
	used   int64         // at the last look
	budget time.Duration // that records may take
	at     time.Time     // of the last look

	recorded     time.Time // when the last record was begun
	recordedUsed int64

	noticed time.Time // when the last notice was; zero before
	armed   bool      // the next time that the limit is near, there is a notice
}

func newSchedule(every time.Duration, near float64) schedule {
	return schedule{every: every, near: near, armed: true, budget: budgetMost}
}

// look says what to do at a time, with the charge and the limit of the container; 0 if there is none.
func (s *schedule) look(now time.Time, used, limit int64) (record, notice bool) {
	s.budget = min(budgetMost, s.budget+now.Sub(s.at)/budgetShare)
	if s.at.IsZero() {
		s.budget = budgetMost
	}
	grown := used - s.used
	s.at, s.used = now, used
	every := s.every
	if limit > 0 && abs(used-s.recordedUsed) < limit/changedNear {
		every *= quietFor
	}
	due := max(s.recorded.Add(every).Sub(now), -s.budget*budgetShare) // until then there is no budget
	if record = due <= 0; record {
		due = s.every
	}
	if limit <= 0 {
		s.pause = due
		return record, false
	}
	s.pause = min(due, s.every, nextLook(s.pause, grown, limit-used, limit))
	isNear := float64(used) >= s.near*float64(limit)
	part := int64(changed)
	if isNear {
		part = changedNear
	}
	record = record || s.budget > 0 && abs(used-s.recordedUsed) >= limit/part
	if float64(used) < (s.near-noticeBelow)*float64(limit) {
		s.armed = true
	}
	if isNear && s.armed && (s.noticed.IsZero() || now.Sub(s.noticed) >= noticePause) {
		s.armed, s.noticed, record, notice = false, now, true, true
	}
	return record, notice
}

// wrote says that a record was begun at a time and has taken so long.
func (s *schedule) wrote(began time.Time, took time.Duration) {
	s.recorded, s.recordedUsed = began, s.used
	s.budget -= took
}

// nextLook returns how long to wait. If the charge has grown in the last pause, that is an eighth of the
// time in which the room would be gone at this rate; and twice the last pause if it has hardly grown.
func nextLook(pause time.Duration, grown, room, limit int64) time.Duration {
	if grown <= limit/1024 {
		return max(lookLeast, min(2*pause, lookMost))
	}
	const part = 8
	next := float64(pause) * float64(max(room, 0)) / float64(part*grown)
	return max(lookLeast, min(time.Duration(next), lookMost))
}

func abs(n int64) int64 { return max(n, -n) }
