package explain

import "testing"

// checkSums checks that each dimension adds up.
func checkSums(t *testing.T, r *Report) {
	t.Helper()
	sum := func(shares []Share) (sum float64) {
		for _, s := range shares {
			sum += s.Share
			if s.Low > s.Share+1e-9 || s.High < s.Share-1e-9 || s.Share < -1e-9 {
				t.Errorf("%s: %.3f is not from %.3f to %.3f", s.Name, s.Share, s.Low, s.High)
			}
		}
		return sum
	}
	isOne := func(what string, x float64) {
		if x < 0.9999 || x > 1.0001 {
			t.Errorf("%s add up to %v", what, x)
		}
	}
	isOne("mechanisms", sum(r.Mechanisms))
	isOne("purposes", sum(r.Purposes))
	both, sites, parts := 0.0, 0.0, 0.0
	for _, c := range r.Both {
		both += c.Share
	}
	for _, s := range r.Sites {
		sites += s.Share
		for _, share := range s.Mechanisms {
			parts += share
		}
	}
	isOne("cells", both)
	isOne("call sites", sites)
	isOne("mechanisms of call sites", parts)
	if rest := sum(r.Rest); rest < Of(r.Mechanisms, Rest).Share-1e-4 || rest > Of(r.Mechanisms, Rest).Share+1e-4 {
		t.Errorf("the parts of the rest add up to %v, the rest is %v", rest, Of(r.Mechanisms, Rest).Share)
	}
}
