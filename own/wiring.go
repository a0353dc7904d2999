package own

import (
	"github.com/cheapgo/cheap/internal/census"
	"github.com/cheapgo/cheap/internal/gcwatch"
	"github.com/cheapgo/cheap/internal/leaks"
	"github.com/cheapgo/cheap/own/internal/batch"
	"github.com/cheapgo/cheap/own/internal/intake"
	"github.com/cheapgo/cheap/own/internal/worker"
)

// upward implements interfaces of packages below this one, through which they call it. Only
// this file gives it to them.
type upward struct {
	intake.AfterSweep
	worker.AfterWalk
}

func init() {
	gcwatch.Follow(upward{})
	census.SetPools(upward{})
	leaks.SetPools(upward{})
	setLevelsFromEnvironment() // after that: pools may have been made already
}

func (upward) Pools(list []census.Pool) []census.Pool { return readPools(list) }
func (upward) StoreBytes() int64                      { return batch.Outside() }

func (upward) LevelsChanged()      { setLevels() }
func (upward) Sites() []leaks.Site { return readSites() }
func (upward) All() []leaks.Pool   { return readLeaks() }
