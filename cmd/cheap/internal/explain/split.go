package explain

import "math"

// split takes the part of calls and callbacks that the profile shows as C itself away from C,
// in each group and in the whole.
//
// flat = C + perCall × transitions + perCallback × callbacks. The two ratios are those of
// programs in which C does nothing, so they hold whatever C does, as long as its calls take the
// fast ways through entersyscall and exitsyscall.
//
// A group with few samples may have less flat time than its calls would hide. So C of a group is
// at least 0, and all are scaled to add up to C of the whole, which is known better.
//
// In an exact profile the callbacks are known. Behind a callback, the runtime's part of the call
// takes longer than in the calibration, so it is taken as the profile shows it.
func split(groups map[groupKey]*group, whole *group, cal Calibration, exact bool) {
	whole.split(cal)
	sum, known := 0.0, 0.0
	for _, g := range groups {
		g.split(cal)
		if more := g.near - g.call; exact && g.callbacks > 0 && more > 0 {
			g.call += more
			known += more
			g.c = Share{Share: math.Max(0, g.c.Share-more), Low: math.Max(0, g.c.Low-more), High: math.Max(0, g.c.High-more)}
		}
		sum += g.c.Share
	}
	whole.c = Share{Share: math.Max(0, whole.c.Share-known), Low: math.Max(0, whole.c.Low-known), High: math.Max(0, whole.c.High-known)}
	scale := 0.0
	if sum > 0 {
		scale = whole.c.Share / sum
	}
	whole.call, whole.callback = 0, 0
	for _, g := range groups {
		g.c.Share = math.Min(g.flat, g.c.Share*scale)
		hidden := g.call + g.callback
		rest := g.flat - g.c.Share
		if hidden > 0 {
			g.call, g.callback = rest*g.call/hidden, rest*g.callback/hidden
		} else {
			g.call = rest
		}
		g.of[mechC] += -g.flat + g.c.Share
		g.of[mechCrossing] += g.call
		g.of[mechCallback] += g.callback
		g.c.Low, g.c.High = math.Min(g.c.Low, g.c.Share), math.Max(g.c.High, g.c.Share)
		whole.call += g.call
		whole.callback += g.callback
	}
}

// split estimates C itself and what the calls and callbacks of a group hide in its flat time.
func (g *group) split(cal Calibration) {
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
