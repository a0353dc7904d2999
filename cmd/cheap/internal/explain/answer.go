package explain

import (
	"fmt"
	"math"
	"time"

	"github.com/cheapgo/cheap/internal/page/figure"
)

// offBy is how far from the truth a share of 30% may be before the report warns, in points.
const offBy = 5.0

// enough is how many samples bound the error of a share of 30%, two standard errors, to offBy.
var enough = int64(math.Ceil(0.3 * 0.7 * (200 / offBy) * (200 / offBy)))

// meanings say in a sentence what the mechanisms are whose names do not.
var meanings = map[string]string{
	Crossing: "the way to C and back", Callback: "the way from C to Go and back", Allocation: "allocation in the Go heap",
	Locks: "locks", Collection: "the collector of Go",
}

// Answer says in one sentence what the largest share is and what can be done. It is "" without samples.
func (r *Report) Answer() string {
	var most Share
	for i, s := range r.Mechanisms {
		if i != mechanismIndex(mechGo) && s.Share > most.Share {
			most = s
		}
	}
	for _, s := range r.Rest {
		if s.Share > most.Share {
			most = s
		}
	}
	if most.Share == 0 {
		return ""
	}
	name := most.Name
	if meaning := meanings[name]; meaning != "" {
		name = meaning
	}
	text := fmt.Sprintf("The largest share, %s of the processor time, is %s; ", figure.Percent(most.Share), name)
	if len(r.Advice) == 0 {
		return text + "this command knows no change that would save a point."
	}
	a := r.Advice[0]
	if a.Open {
		return text + fmt.Sprintf("worth a look is %s, %s.", a.Site, figure.Percent(a.Now))
	}
	return text + fmt.Sprintf("a change would save most at %s: %s now, then about %s.", a.Site, figure.Percent(a.Now), figure.Percent(a.Expected))
}

// TooFew warns of too few samples, and says how many are enough. It is "" where they are enough.
func (r *Report) TooFew() string {
	if r.Samples >= enough {
		return ""
	}
	text := fmt.Sprintf("Too few samples: there are %s, and from %s on a share of 30%% is off by at most about %.0f points. Profile for longer",
		figure.Thousands(int(r.Samples)), figure.Thousands(int(enough)), offBy)
	if r.Samples > 0 && r.CPU > 0 {
		text += fmt.Sprintf(": %d samples are %v of processor time", enough, (r.CPU * time.Duration(enough) / time.Duration(r.Samples)).Round(100*time.Millisecond))
	}
	return text + "."
}
