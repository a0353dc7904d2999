package tables

import (
	"fmt"

	"github.com/cheapgo/cheap/lab/internal/measure"
)

// counted is a work. Each of its operations adds at least each to count.
func counted(run func(n int) error, count func() int64, each int64) measure.Work {
	var err error
	var counts int64
	return measure.Work{
		Run: func(n int) {
			before := count()
			err = run(n)
			counts = count() - before
		},
		Check: func(n int) error {
			if err != nil {
				return err
			}
			if want := each * int64(n); counts < want {
				return fmt.Errorf("%d calls of C in %d operations, want %d", counts, n, want)
			}
			return nil
		},
	}
}

// noError is a run that cannot fail.
func noError(run func(n int)) func(int) error {
	return func(n int) error {
		run(n)
		return nil
	}
}
