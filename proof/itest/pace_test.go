package itest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/cheapgo/cheap"
	"github.com/cheapgo/cheap/internal/mem/account"
	"github.com/cheapgo/cheap/internal/test/testwait"
	"github.com/cheapgo/cheap/own"
	"github.com/cheapgo/cheap/pace"
)

const mib = 1 << 20

// A paceAccount is an account, and what it has to hold.
type paceAccount struct {
	a     *pace.Account
	o     pace.AccountOptions
	parts []int64 // each added and not removed
}

func (a *paceAccount) held() (sum int64) {
	for _, n := range a.parts {
		sum += n
	}
	return sum
}

// A paceModel adds and removes, with owners beside, while pace starts and stops.
type paceModel struct {
	accounts []*paceAccount
	pool     *own.Pool
	owners   []*own.Number[int]
	sizes    []int64

	started    bool
	limit      int64 // of all, 0 for none
	held, auto int64 // before the test
}

func runPaceModel(t *rapid.T) {
	runtime.GC()
	m := &paceModel{pool: own.NewPool(own.Options{Numbers: true, Batch: 1, Release: func(_ any, _ []uintptr) error { return nil }})}
	m.held = account.Process.Held()
	m.auto, _ = account.Process.Reclaimable()
	defer pace.Stop()
	defer m.pool.CloseWait(within(time.Second))
	t.Repeat(map[string]func(*rapid.T){
		"":        m.check,
		"open":    m.open,
		"close":   m.close,
		"add":     m.add,
		"remove":  m.remove,
		"own":     m.own,
		"resize":  m.resize,
		"release": m.release,
		"start":   m.start,
		"stop":    m.stop,
		"limit":   m.setLimit,
	})
	for len(m.accounts) > 0 {
		m.end(0)
	}
	for len(m.owners) > 0 {
		m.drop(0)
	}
	m.check(t)
}

func (m *paceModel) open(t *rapid.T) {
	o := pace.AccountOptions{
		Name:   rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name"),
		Limit:  rapid.SampledFrom([]int64{0, 0, 0, 1000, 50 * mib}).Draw(t, "limit"),
		Manual: rapid.Bool().Draw(t, "manual"),
	}
	m.accounts = append(m.accounts, &paceAccount{a: pace.NewAccount(o), o: o})
}

// some draws an account.
func (m *paceModel) some(t *rapid.T) *paceAccount {
	if len(m.accounts) == 0 {
		t.Skip("there is no account")
	}
	return rapid.SampledFrom(m.accounts).Draw(t, "account")
}

func (m *paceModel) close(t *rapid.T) {
	a := m.some(t)
	m.end(slices.Index(m.accounts, a))
}

func (m *paceModel) end(i int) {
	m.accounts[i].a.Close()
	m.accounts = slices.Delete(m.accounts, i, i+1)
}

func (m *paceModel) add(t *rapid.T) {
	a := m.some(t)
	n := rapid.OneOf(rapid.Int64Range(0, 2000), rapid.Int64Range(0, 30*mib), rapid.Int64Range(0, 200*mib)).Draw(t, "bytes")
	var err error
	if rapid.Bool().Draw(t, "wait") {
		err = a.a.Wait(context.Background(), n)
	} else {
		err = a.a.Add(n)
	}
	switch fits := a.o.Limit == 0 || n <= a.o.Limit-a.held(); {
	case err == nil && !fits:
		t.Fatalf("%d bytes were added beyond the limit of %d", n, a.o.Limit)
	case err == nil && n > 0 && m.limit != 0 && account.Process.Held() > m.limit:
		t.Fatalf("%d bytes are held beyond the limit of %d", account.Process.Held(), m.limit)
	case err != nil && !errors.Is(err, cheap.ErrLimit):
		t.Fatal(err)
	case err != nil && fits && m.limit == 0:
		t.Fatalf("%d bytes fit, and were refused: %v", n, err)
	case err == nil:
		a.parts = append(a.parts, n)
	}
}

func (m *paceModel) remove(t *rapid.T) {
	a := m.some(t)
	if len(a.parts) == 0 {
		t.Skip("there is nothing in it")
	}
	i := rapid.IntRange(0, len(a.parts)-1).Draw(t, "part")
	a.a.Remove(a.parts[i])
	a.parts = slices.Delete(a.parts, i, i+1)
}

func (m *paceModel) own(t *rapid.T) {
	n := rapid.IntRange(1, 10*mib).Draw(t, "bytes")
	o := new(own.Number[int])
	if rapid.Bool().Draw(t, "reserved") {
		room, err := m.pool.Reserve(t.Context(), n)
		if err != nil {
			if m.limit == 0 || !errors.Is(err, cheap.ErrLimit) {
				t.Fatal(err)
			}
			return
		}
		if err := o.OwnWith(m.pool, 1, own.With{Room: room}); err != nil {
			t.Fatal(err)
		}
	} else if err := o.Own(m.pool, 1, n); err != nil {
		t.Fatal(err)
	}
	m.owners, m.sizes = append(m.owners, o), append(m.sizes, int64(n))
}

func (m *paceModel) someOwner(t *rapid.T) int {
	if len(m.owners) == 0 {
		t.Skip("there is no owner")
	}
	return rapid.IntRange(0, len(m.owners)-1).Draw(t, "owner")
}

func (m *paceModel) resize(t *rapid.T) {
	i := m.someOwner(t)
	m.sizes[i] = rapid.Int64Range(1, 10*mib).Draw(t, "bytes")
	m.owners[i].Resize(int(m.sizes[i]))
}

func (m *paceModel) release(t *rapid.T) { m.drop(m.someOwner(t)) }

func (m *paceModel) drop(i int) {
	m.owners[i].Close()
	m.owners, m.sizes = slices.Delete(m.owners, i, i+1), slices.Delete(m.sizes, i, i+1)
}

func (m *paceModel) start(t *rapid.T) {
	limit := rapid.SampledFrom([]int64{0, 0, 200 * mib, 1 << 40}).Draw(t, "limit")
	switch err := pace.Start(pace.Options{Limit: limit, MaxGCShare: 1}); {
	case m.started && err != pace.ErrStarted, !m.started && err != nil:
		t.Fatalf("Start: %v, started before: %v", err, m.started)
	case !m.started:
		m.started, m.limit = true, limit
	}
}

func (m *paceModel) stop(*rapid.T) {
	pace.Stop()
	m.started, m.limit = false, 0
}

func (m *paceModel) setLimit(t *rapid.T) {
	limit := rapid.SampledFrom([]int64{0, 100 * mib, 1 << 40}).Draw(t, "limit")
	if was := pace.SetLimit(limit); was != m.limit {
		t.Fatalf("SetLimit returned %d, it was %d", was, m.limit)
	}
	if m.started {
		m.limit = limit
	}
}

// check compares every count with the reference.
func (m *paceModel) check(t *rapid.T) {
	held, auto := m.held, m.auto
	list := pace.Accounts()
	for _, a := range m.accounts {
		n := a.held()
		if a.a.Held() != n {
			t.Fatalf("an account holds %d bytes, want %d", a.a.Held(), n)
		}
		name := a.o.Name
		if name == "" {
			name = "pace.Account"
		}
		want := pace.Usage{Name: name, Held: n, Limit: a.o.Limit, Live: n, Blocks: int64(len(a.parts))}
		i := slices.Index(list, want)
		if i < 0 {
			t.Fatalf("%+v is not in the list: %+v", want, list)
		}
		list = slices.Delete(list, i, i+1)
		if held += n; !a.o.Manual {
			auto += n
		}
	}
	// What is small may be in a batch that is open still, and not counted yet.
	open := int64(0)
	for _, n := range m.sizes {
		if held, auto = held+n, auto+n; n < 64<<10 {
			open += n
		}
	}
	st := pace.ReadStats()
	if st.Held > held || st.Held < held-open || st.Reclaimable > auto || st.Reclaimable < auto-open {
		t.Fatalf("%d bytes are held, want %d; automatically %d, want %d; %d of them may not be counted", st.Held, held, st.Reclaimable, auto, open)
	}
	if st.Limit != m.limit && m.started {
		t.Fatalf("the limit is %d, want %d", st.Limit, m.limit)
	}
}

// TestPaceModel compares what is counted with a reference, whatever is done, in a process in which nothing
// else is counted.
func TestPaceModel(t *testing.T) {
	inChild(t, func(t *testing.T) { rapid.Check(t, runPaceModel) })
}

// TestPaceLeavesNothing looks whether a goroutine or a timer stays behind, in a
// process that has used nothing before.
func TestPaceLeavesNothing(t *testing.T) {
	inChild(t, func(t *testing.T) {
		for _, o := range []pace.Options{{}, {Limit: 1 << 30}} {
			if err := pace.Start(o); err != nil {
				t.Fatal(err)
			}
			a := pace.NewAccount(pace.AccountOptions{})
			for range 100 {
				if err := a.Add(mib); err != nil {
					t.Fatal(err)
				}
			}
			testwait.Until(t, "a collection has been started", func() bool { return pace.ReadStats().Cycles > 0 })
			a.Close()
			runtime.GC()
			pace.Stop()
			goleak.VerifyNone(t)
		}
	})
}

// TestPaceIdle looks whether there is a goroutine while there is nothing to do.
func TestPaceIdle(t *testing.T) {
	inChild(t, func(t *testing.T) {
		if err := pace.Start(pace.Options{}); err != nil {
			t.Fatal(err)
		}
		a := pace.NewAccount(pace.AccountOptions{})
		for range 100 {
			if err := a.Add(mib); err != nil {
				t.Fatal(err)
			}
		}
		goleak.VerifyNone(t) // waits for the collection
		cycles := pace.ReadStats().Cycles
		for range 5 {
			runtime.GC()
		}
		goleak.VerifyNone(t)
		if now := pace.ReadStats().Cycles; now != cycles {
			t.Errorf("%d collections with nothing to do", now-cycles)
		}
		pace.Stop()
	})
}

// TestFirstPaceInBubble uses pace inside of a bubble before anywhere else: what
// it does there starts nothing, and it works outside afterwards.
func TestFirstPaceInBubble(t *testing.T) {
	inChild(t, func(t *testing.T) {
		var a, b *pace.Account
		pool := own.NewPool(own.Options{Numbers: true, Release: func(_ any, _ []uintptr) error { return nil }})
		synctest.Test(t, func(t *testing.T) {
			if err := pace.Start(pace.Options{Limit: 500 * mib}); err != nil {
				t.Fatal(err)
			}
			a, b = pace.NewAccount(pace.AccountOptions{}), pace.NewAccount(pace.AccountOptions{Limit: 10})
			for range 100 {
				if err := a.Add(mib); err != nil {
					t.Fatal(err)
				}
				if err := new(own.Number[int]).Own(pool, 1, mib); err != nil {
					t.Fatal(err)
				}
			}
			begin := time.Now()
			if err := b.Wait(t.Context(), 11); !errors.Is(err, cheap.ErrLimit) {
				t.Errorf("at a limit: %v", err)
			}
			if err := a.Wait(t.Context(), 600*mib); !errors.Is(err, cheap.ErrLimit) {
				t.Errorf("at the limit of all: %v", err)
			}
			if took := time.Since(begin); took != 0 {
				t.Errorf("%v of the bubble's time have passed", took)
			}
			synctest.Wait()
			if st := pace.ReadStats(); st.Cycles != 0 || st.Waits != 0 {
				t.Errorf("in a bubble: %+v", st)
			}
		})
		for range 30 {
			if err := a.Add(mib); err != nil {
				t.Fatal(err)
			}
		}
		testwait.Until(t, "a collection is started, outside of the bubble", func() bool { return pace.ReadStats().Cycles > 0 })
		synctest.Test(t, func(t *testing.T) {
			for range 20 { // a collection may be under way, outside
				if err := a.Add(mib); err != nil {
					t.Fatal(err)
				}
			}
			pace.Stop()
		})
		goleak.VerifyNone(t)
	})
}
