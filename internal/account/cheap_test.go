package account

import "testing"

// TestCHeap has a C heap whose size a test sets, and of which another account counts a part.
func TestCHeap(t *testing.T) {
	var is int64
	var watched []bool
	cHeap.account = nil
	OpenCHeap(func() (int64, int64) { return 7, is }, func(on bool) { watched = append(watched, on) })
	t.Cleanup(func() {
		cHeap.account.Close()
		cHeap.account, cHeap.read, cHeap.watch, cHeap.held = nil, nil, nil, 0
	})
	part := Open("part", 0, func() (int64, int64) { return 0, 0 })
	part.InCHeap()
	defer part.Close()
	other := Open("other", 0, func() (int64, int64) { return 0, 0 })
	defer other.Close()
	held := Held()
	auto, ever := Reclaimable()
	check := func(step string, wantHeld, wantAuto, wantEver int64) {
		t.Helper()
		Refresh()
		a, e := Reclaimable()
		if h := Held() - held; h != wantHeld || a-auto != wantAuto || e-ever != wantEver {
			t.Errorf("%s: held %d, auto %d, ever %d, want %d, %d, %d", step, h, a-auto, e-ever, wantHeld, wantAuto, wantEver)
		}
	}
	is = 100
	check("grown", 100, 100, 100)
	other.Charge(5)
	check("another account", 105, 100, 100)
	part.Charge(30)
	check("a part is counted", 105, 70, 100)
	part.Charge(200)
	check("more than the C heap has", 235, 0, 100)
	part.Uncharge(200)
	part.TryUncharge(10)
	check("less of it", 105, 80, 180)
	if !part.TryCharge(20) {
		t.Fatal("refused")
	}
	check("taken", 105, 60, 180)
	is = 60
	check("shrunk", 65, 20, 180)
	part.Close()
	check("a part is forgotten", 65, 60, 220)
	if n := MeanCharge(); n != 0 && n > 1000 {
		t.Errorf("the bytes of the C heap count as those of one owner: %d", n)
	}

	looks := 0
	paced(t, Pace{Look: func() { looks++ }, Pressure: func() { t.Error("the goroutine may wait") }})
	SetBounds(Held()+10, 1<<60, 1<<60)
	is = 80
	Refresh()
	Look()
	Look()
	if looks != 1 {
		t.Errorf("%d looks, want one", looks)
	}
	SetPace(nil)
	if len(watched) != 3 || watched[0] || !watched[1] || watched[2] {
		t.Errorf("watched: %v", watched)
	}
	if all := List(); len(all) == 0 {
		t.Error("no account")
	}
}
