package measure

import (
	"context"
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/cheapgo/cheap/internal/page/result"
	"github.com/cheapgo/cheap/internal/test/testcall"
)

// served is a row for processes that stay: it fails when asked for 13.
func served() Row {
	return Row{Name: "served", Open: func(procs int) (Work, error) {
		if procs == 3 {
			return Work{}, errors.New("no such luck")
		}
		return Work{
			Run: func(n int) {
				for range n {
					sink = new([64]byte)
				}
			},
			Figures: func() Figures { return Figures{Held: 3.5, P99: 99, Resident: 7} },
			Check: func(n int) error {
				if n == 13 {
					return errors.New("an unlucky number")
				}
				return nil
			},
		}, nil
	}}
}

func serveArgs(procs int) *exec.Cmd {
	return child(context.Background(), "remote", "served", strconv.Itoa(procs))
}

func TestRemote(t *testing.T) {
	work, err := Remote(serveArgs)(2)
	testcall.Must(t, err)
	defer work.Close()
	for _, n := range []int{1000, 50_000} {
		wall, _, err := work.Time(n)
		testcall.Must(t, err)
		if work.Figures() != (Figures{Held: 3.5, P99: 99, Resident: 7}) {
			t.Errorf("figures %+v", work.Figures())
		}
		allocs, bytes := work.Heap()
		if wall <= 0 || int(allocs) < n || int(allocs) > n+1000 || int(bytes) < 64*n {
			t.Errorf("%d operations took %v ns, and %d allocations of %d bytes", n, wall, allocs, bytes)
		}
	}
	if _, _, err := work.Time(13); err == nil || !strings.Contains(err.Error(), "an unlucky number") {
		t.Errorf("a round that fails: %v", err)
	}
	if _, _, err := work.Time(14); err != nil {
		t.Errorf("after a round that fails: %v", err)
	}
}

func TestRemoteDies(t *testing.T) {
	work, err := Remote(serveArgs)(3)
	testcall.Must(t, err)
	defer work.Close()
	if _, _, err := work.Time(1); err == nil || !strings.Contains(err.Error(), "no such luck") {
		t.Errorf("a process that cannot open its row: %v", err)
	}
}

func TestRemoteMissing(t *testing.T) {
	_, err := Remote(func(int) *exec.Cmd { return exec.Command(t.TempDir() + "/missing") })(1)
	if err == nil {
		t.Error("a program that is not there was started")
	}
}

// TestRemoteRows measures rows of two processes, in turns.
func TestRemoteRows(t *testing.T) {
	row := Row{Name: "one", Group: "both", N: 20_000, Open: Remote(serveArgs)}
	other := row
	other.Name, other.Versus = "other", "one"
	report, err := Run(context.Background(), []Table{{Table: result.Table{Name: "remote"}, Rows: []Row{row, other}}}, Options{Count: 6})
	testcall.Must(t, err)
	if len(report.Rows) != 2 {
		t.Fatalf("%d rows", len(report.Rows))
	}
	for _, r := range report.Rows {
		if len(r.Samples) != 6 || r.NsPerOp <= 0 || r.AllocsPerOp < 1 || r.AllocsPerOp > 1.1 {
			t.Errorf("%+v", r)
		}
	}
	if v := report.Rows[1].Versus; v == nil || v.To != "one" || v.Ratio <= 0 {
		t.Errorf("compared with %+v", v)
	}
}
