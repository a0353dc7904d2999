package pace

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/test/testcall"
	"github.com/cheapgo/cheap/internal/test/testwait"
)

func TestAccount(t *testing.T) {
	before, autoBefore := account.Process.Held(), auto()
	a := newAccount(t, AccountOptions{Name: "TestAccount", Limit: 1000})
	m := newAccount(t, AccountOptions{Name: "TestAccount, by hand", Manual: true})
	for _, row := range []struct {
		a   *Account
		add int64 // negative to remove
		ok  bool
		// afterwards
		held, auto int64
	}{
		{a, 600, true, 600, 600},
		{a, 0, true, 600, 600},
		{a, 401, false, 600, 600},
		{a, 400, true, 1000, 1000},
		{a, 1, false, 1000, 1000},
		{a, -700, true, 300, 300},
		{m, 5000, true, 5000, 300},
		{m, -4000, true, 1000, 300},
		{a, 1 << 62, false, 300, 300},
		{a, -300, true, 0, 0},
	} {
		var err error
		if row.add < 0 {
			row.a.Remove(-row.add)
		} else {
			err = row.a.Add(row.add)
		}
		if (err == nil) != row.ok || row.a.Held() != row.held || auto()-autoBefore != row.auto {
			t.Errorf("%d: %v, held %d, automatically %d", row.add, err, row.a.Held(), auto()-autoBefore)
		}
	}
	list := Accounts()
	i := slices.IndexFunc(list, func(u Usage) bool { return u.Name == "TestAccount" })
	if want := (Usage{Name: "TestAccount", Limit: 1000}); i < 0 || list[i].Name != want.Name || list[i].Limit != want.Limit || list[i].Held != 0 {
		t.Errorf("in the list: %+v", list)
	}
	if i++; i >= len(list) || list[i].Held != 1000 || list[i].Live != 1000 {
		t.Errorf("in the list: %+v", list)
	}
	testcall.Must(t, a.Add(10))
	a.Close()
	m.Close()
	a.Close()
	if account.Process.Held() != before || auto() != autoBefore {
		t.Errorf("%d bytes are held after Close, %d automatically", account.Process.Held()-before, auto()-autoBefore)
	}
}

func TestAccountMisuse(t *testing.T) {
	a := newAccount(t, AccountOptions{Name: "misused"})
	testcall.Must(t, a.Add(100))
	before := auto()
	for words, f := range map[string]func(){
		"misused.Add: -1 bytes":                                  func() { a.Add(-1) },
		"misused.Remove: -1 bytes":                               func() { a.Remove(-1) },
		"misused.Remove: 101 bytes, of 100":                      func() { a.Remove(101) },
		"pace.NewAccount: AccountOptions.Limit is negative (-1)": func() { NewAccount(AccountOptions{Limit: -1}) },
	} {
		mustMisuse(t, words, f)
		if a.Held() != 100 || auto() != before {
			t.Errorf("%s: held %d, automatically %d", words, a.Held(), auto())
		}
	}
}

// TestNoAccount calls the methods of an account that NewAccount has not made.
func TestNoAccount(t *testing.T) {
	for _, a := range []*Account{nil, new(Account)} {
		for method, f := range map[string]func(){
			"Add":    func() { a.Add(1) },
			"Wait":   func() { a.Wait(t.Context(), 1) },
			"Remove": func() { a.Remove(1) },
			"Close":  func() { a.Close() },
			"Held":   func() { a.Held() },
		} {
			mustMisuse(t, "pace.Account."+method+": the Account is nil or zero; make it with NewAccount", f)
		}
	}
}

// TestRemoveTwice removes the same bytes from two goroutines: one of them must
// panic, and the account must not go below 0.
func TestRemoveTwice(t *testing.T) {
	a := newAccount(t, AccountOptions{})
	before := auto()
	for range 2000 {
		testcall.Must(t, a.Add(100))
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				defer func() { recover() }()
				a.Remove(100)
			})
		}
		wg.Wait()
		if held, more := a.Held(), auto()-before; held != 0 || more != 0 {
			account.Process.UnchargeReclaimable(more) // no other test is to see it
			t.Fatalf("held %d, automatically %d more", held, more)
		}
	}
}

// TestLimitError compares the errors at three limits: that of an account without
// Start, that of an account with it, and that of the program.
func TestLimitError(t *testing.T) {
	a := newAccount(t, AccountOptions{Name: "images", Limit: 1000})
	err := a.Add(1001)
	var e *LimitError
	if !errors.Is(err, cheap.ErrLimit) || errors.As(err, &e) || !strings.Contains(err.Error(), "cheap: images.Add: 1001 bytes") {
		t.Errorf("without Start: %v", err)
	}
	start(t, Options{})
	if err := a.Add(10); err != nil { // a collection could help
		t.Fatal(err)
	}
	err = a.Wait(t.Context(), 1001)
	if !errors.Is(err, cheap.ErrLimit) || !errors.As(err, &e) || e.Wanted != 1001 || e.Limit != 0 ||
		!strings.Contains(err.Error(), "cheap: images.Wait: ") || !strings.Contains(err.Error(), "a limit of its own") {
		t.Errorf("with Start: %v", err)
	}
	if e != nil && e.Verdict != "" {
		t.Errorf("the limit of an account has nothing to do with %q", e.Verdict)
	}
	if st := ReadStats(); st.Refusals != 1 || st.Cycles < 1 || st.Cycles > 2 { // the second has to begin within 100 ms
		t.Errorf("%+v", st)
	}
	SetLimit(100 * mib)
	free := newAccount(t, AccountOptions{Name: "all"})
	testcall.Must(t, free.Add(10*mib))
	err = free.Wait(t.Context(), 95*mib)
	if !errors.Is(err, cheap.ErrLimit) || !errors.As(err, &e) ||
		e.Wanted != 95*mib || e.Limit != 100*mib || e.Held < 10*mib || e.Held > 60*mib || e.Reclaimable < 10*mib || e.Reclaimable > e.Held || e.Go < mib || e.Go > 100*mib {
		t.Errorf("%v: %+v", err, e)
	}
	for _, words := range []string{"99614720 bytes", "100.0 MiB", "10.0 MiB of them"} {
		if !strings.Contains(err.Error(), words) {
			t.Errorf("%q does not say %q", err, words)
		}
	}
	if e != nil && runtime.GOOS == "linux" && (e.Verdict == "" || !strings.HasSuffix(err.Error(), e.Verdict)) {
		t.Errorf("the error does not say what holds the memory: %v", err)
	}
	if errors.Is(err, cheap.ErrNoMemory) {
		t.Errorf("%v is taken for a lack of memory", err)
	}
	if free.Held() != 10*mib {
		t.Errorf("held %d after what was refused", free.Held())
	}
	if err := free.Add(10 * mib); err != nil {
		t.Errorf("what fits, afterwards: %v", err)
	}
}

// An image is the type of a binding with a cleanup of its own.
type image struct{ _ [16]byte }

func newImage(a *Account, size int64) (*image, error) {
	if err := a.Wait(context.Background(), size); err != nil {
		return nil, err
	}
	m := new(image)
	runtime.AddCleanup(m, a.Remove, size)
	return m, nil
}

// TestBinding has a binding with cleanups of its own forget its images.
func TestBinding(t *testing.T) {
	const n = 1000
	bear(t, patient)
	start(t, Options{})
	a := newAccount(t, AccountOptions{Name: "images"})
	high := int64(0)
	for range n {
		if _, err := newImage(a, mib); err != nil {
			t.Fatal(err)
		}
		high = max(high, a.Held())
	}
	st := ReadStats()
	forget(t, a)
	// Some 70. Without waits there are 500 and more. What a collection of the runtime's own finds is not counted.
	if high > n/5*mib || st.Released < n/2*mib || st.Cycles == 0 || st.Yields == 0 {
		t.Errorf("%d MiB were held at one time; %+v", high/mib, st)
	}
	t.Logf("%d MiB were held at one time", high/mib)
}

// forget waits until all images are gone.
func forget(t *testing.T, a *Account) {
	t.Helper()
	testwait.Until(t, "all to be given back", func() bool {
		runtime.GC()
		return a.Held() == 0
	})
}

// TestAccountLimit has a binding stay within its account's limit by collections
// that refusals cause.
func TestAccountLimit(t *testing.T) {
	p := start(t, Options{})
	// The limit is less than the floor of pacing.
	a := newAccount(t, AccountOptions{Name: "images", Limit: 4 * mib})
	for i := range 100 {
		if _, err := newImage(a, mib); err != nil {
			t.Fatalf("image %d: %v", i, err)
		}
	}
	if st := ReadStats(); st.Refusals != 0 || st.Cycles == 0 {
		t.Errorf("%+v", st)
	}
	var live []*image
	for {
		before, _ := p.counts()
		m, err := newImage(a, mib)
		if err == nil {
			live = append(live, m)
			continue
		}
		if begun, _ := p.counts(); len(live) != 4 || begun-before > 2 {
			t.Errorf("%d MiB fit into 4, and it took %d collections to say so", len(live), begun-before)
		}
		break
	}
	runtime.KeepAlive(live)
	live = nil
	forget(t, a)
}

// TestAddDoesNotWait has Add refuse what is more than the limit, until the collection that it
// has begun has made room.
func TestAddDoesNotWait(t *testing.T) {
	start(t, Options{MaxGCShare: 1})
	a := newAccount(t, AccountOptions{Limit: mib})
	if _, err := newImage(a, mib); err != nil {
		t.Fatal(err)
	}
	if err := a.Add(mib); !errors.Is(err, cheap.ErrLimit) {
		t.Errorf("Add at the limit: %v", err)
	}
	testwait.Until(t, "a collection to make room", func() bool { return a.Add(mib) == nil })
	testwait.Until(t, "the collection to be counted", func() bool { return ReadStats().Cycles > 0 })
}

// TestRefusalsShareCollections has many goroutines wait at a limit at a time.
func TestRefusalsShareCollections(t *testing.T) {
	start(t, Options{})
	a := newAccount(t, AccountOptions{Limit: 100})
	testcall.Must(t, a.Add(100))
	const n = 64
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if err := a.Wait(t.Context(), 1); !errors.Is(err, cheap.ErrLimit) {
				t.Errorf("refused with %v", err)
			}
		})
	}
	wg.Wait()
	if st := ReadStats(); st.Refusals != n || st.Cycles < 2 || st.Cycles > n/2 {
		t.Errorf("%d waited, and caused %d collections; %+v", n, st.Cycles, st)
	}
}

// TestGrowth has everything live: collections are in vain, and few.
func TestGrowth(t *testing.T) {
	p := start(t, Options{MaxGCShare: 1})
	a := newAccount(t, AccountOptions{})
	for range 1024 {
		testcall.Must(t, a.Add(mib))
		settled(t, p)
	}
	if st := ReadStats(); st.Cycles == 0 || st.Cycles > 12 || st.Released != 0 {
		t.Errorf("%+v", st)
	}
}

// TestManual takes many bytes that no collection frees.
func TestManual(t *testing.T) {
	p := start(t, Options{})
	a := newAccount(t, AccountOptions{Manual: true})
	for range 1024 {
		testcall.Must(t, a.Add(mib))
	}
	settled(t, p)
	if st := ReadStats(); st.Cycles != 0 || st.Waits != 0 || st.Yields != 0 {
		t.Errorf("%+v", st)
	}
}

// TestMaxGCShare has each collection free many bytes, and a share that is too small
// for a second one in a year.
func TestMaxGCShare(t *testing.T) {
	bear(t, func(p *patience) { p.bound = time.Nanosecond })
	// work makes and frees bytes, in so many turns or, if turns is 0, until there were four
	// collections.
	work := func(share float64, turns int) (cycles int64, turn int) {
		p := start(t, Options{MaxGCShare: share})
		defer Stop()
		a := NewAccount(AccountOptions{})
		defer a.Close()
		held := int64(0)
		for ; turn < turns || turns == 0 && cycles < 4; turn++ {
			was := cycles
			if cycles = ReadStats().Cycles; cycles != was { // it has freed all
				a.Remove(held)
				held = 0
			}
			testcall.Must(t, a.Add(mib))
			held += mib
		}
		begun, _ := p.counts()
		return begun, turn
	}
	many, turns := work(1, 0)
	if few, _ := work(1e-12, turns); few != 1 || many < 4 {
		t.Errorf("%d collections with a share of 1 in %d turns, %d with the least share", many, turns, few)
	}
}

// TestHammerAccounts adds and removes from 16 goroutines, with collections and a
// limit that changes, and looks for drift.
func TestHammerAccounts(t *testing.T) {
	before, autoBefore := account.Process.Held(), auto()
	p := start(t, Options{MaxGCShare: 1})
	accounts := []*Account{
		newAccount(t, AccountOptions{}), newAccount(t, AccountOptions{Limit: 40 * mib}),
		newAccount(t, AccountOptions{Manual: true}), newAccount(t, AccountOptions{Manual: true, Limit: 50 * mib}),
	}
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			a := accounts[g%4]
			var held []int64
			for i := range 400 {
				n := int64((g*7919+i*104729)%(2*mib) + 1)
				if a.Add(n) == nil {
					held = append(held, n)
				}
				if limit := accounts[g%4].o.Limit; limit != 0 && a.Held() > limit {
					t.Errorf("%d bytes are held, and the limit is %d", a.Held(), limit)
				}
				if len(held) > i%5 {
					a.Remove(held[0])
					held = held[1:]
				}
				if g == 0 && i%50 == 0 {
					SetLimit(int64(i/50%3) * 200 * mib)
				}
			}
			for _, n := range held {
				a.Remove(n)
			}
		})
	}
	wg.Wait()
	settled(t, p)
	for i, a := range accounts {
		if a.Held() != 0 || a.live.Load() != 0 {
			t.Errorf("account %d: %d bytes are held in %d parts", i, a.Held(), a.live.Load())
		}
	}
	if account.Process.Held() != before || auto() != autoBefore {
		t.Errorf("the sum drifted by %d, what can be given back by %d", account.Process.Held()-before, auto()-autoBefore)
	}
}
