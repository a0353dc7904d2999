package explain

import "math"

// split takes the part of calls and callbacks that the profile shows as C itself away from C,
// in each group and in the whole.
//
// In an exact profile it is known: the instruction that was interrupted is of C, or of the runtime
// and of what cgo has made around the function.
//
// In others it is estimated: flat = C + a × transitions + b × callbacks. The two
// ratios are those of programs in which C does nothing, so they hold whatever C does, as long as its
// calls take the fast ways through entersyscall and exitsyscall. A group with few samples may have
// less flat time than its calls would hide. So C of a group is at least 0, and all are scaled to add
// up to C of the whole, which is known better.
func split(groups map[groupKey]*group, whole *group, cal Calibration, exact bool) {
	if exact {
		sum := 0.0
		for _, g := range groups {
			sum += g.inlined()
		}
		for _, g := range groups {
			near := g.near
			if sum > 0 {
				near -= g.inlined() * min(1, whole.inlined()/sum)
			}
			g.take(g.flat-near, near, 0)
		}
		near := whole.near - min(sum, whole.inlined())
		whole.take(whole.flat-near, near, 0)
		return
	}
	whole.estimate(cal)
	sum := 0.0
	for _, g := range groups {
		g.estimate(cal)
		sum += g.c.Share
	}
	scale := 0.0
	if sum > 0 {
		scale = whole.c.Share / sum
	}
	whole.call, whole.callback = 0, 0
	for _, g := range groups {
		c := math.Min(g.flat, g.c.Share*scale)
		low, high := g.c.Low, g.c.High
		call, callback := g.flat-c, 0.0
		if hidden := g.call + g.callback; hidden > 0 {
			call, callback = call*g.call/hidden, call*g.callback/hidden
		}
		g.take(c, call, callback)
		g.c.Low, g.c.High = math.Min(low, c), math.Max(high, c)
		whole.call += call
		whole.callback += callback
	}
}

// mostMade is how long a call is in the function of C that cgo has made for it, in parts of the rest of the
// call: 0 for one without a result, 0.12 to 0.16 for one with a number, and 0.19 to 0.28 for one with a struct of 48
// bytes (gcc 12 and clang 14, amd64).
const mostMade = 0.25

// inlined returns the time in functions that cgo has made for which the calls are too few. There C has been
// inlined, and there was no debugging information to say so.
func (g *group) inlined() float64 {
	return math.Max(0, g.made-mostMade*(g.near-g.made+g.transitions))
}

// take divides the flat time of a group into C itself, calls, and callbacks.
func (g *group) take(c, call, callback float64) {
	g.c = Share{Share: c, Low: c, High: c}
	g.call, g.callback = call, callback
	g.of[mechC] += c - g.flat
	g.of[mechCrossing] += call
	g.of[mechCallback] += callback
}

// estimate estimates C itself and what the calls and callbacks of a group hide in its flat time.
func (g *group) estimate(cal Calibration) {
	g.call, g.callback = cal.PerCall.Value*g.transitions, cal.PerCallback.Value*g.callbacks
	low := cal.PerCall.Low*g.transitions + cal.PerCallback.Low*g.callbacks
	high := cal.PerCall.High*g.transitions + cal.PerCallback.High*g.callbacks
	// The signals come at random: the number of them has the square root of itself as its error.
	perSample := g.total / math.Max(1, float64(g.samples))
	noise := 2 * perSample * math.Sqrt(float64(g.flatSamples)*hiddenPart(g)+
		square(cal.PerCall.Value)*float64(g.transitionSamples)+square(cal.PerCallback.Value)*float64(g.callbackSamples))
	in := func(c float64) float64 { return math.Max(0, math.Min(c, g.flat)) }
	g.c = Share{
		Share: in(g.flat - g.call - g.callback),
		Low:   in(g.flat - high - noise),
		High:  in(g.flat - low + noise),
	}
}

// hiddenPart is the part of the flat time that is not C's.
func hiddenPart(g *group) float64 {
	if g.flat == 0 {
		return 0
	}
	return math.Min(1, (g.call+g.callback)/g.flat)
}

func square(x float64) float64 { return x * x }
