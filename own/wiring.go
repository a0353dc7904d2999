package own

import (
	"github.com/cheapgo/cheap/internal/watch/census"
	"github.com/cheapgo/cheap/internal/watch/gcwatch"
	"github.com/cheapgo/cheap/internal/watch/leaks"
	"github.com/cheapgo/cheap/own/internal/batch"
	"github.com/cheapgo/cheap/own/internal/intake"
	"github.com/cheapgo/cheap/own/internal/worker"
)

// ownHost implements interfaces of packages below this one, through which they call it. Only
// this file gives it to them.
type ownHost struct {
	intake.AfterSweep
	worker.AfterWalk
}

func init() {
	gcwatch.Follow(ownHost{})
	census.SetPools(ownHost{})
	leaks.SetPools(ownHost{})
	setLevelsFromEnvironment() // after that: pools may have been made already
}

func (ownHost) Pools(list []census.Pool) []census.Pool { return readPools(list) }
func (ownHost) StoreBytes() int64                      { return batch.Outside() }

func (ownHost) LevelsChanged()      { setLevels() }
func (ownHost) Sites() []leaks.Site { return readSites() }
func (ownHost) All() []leaks.Pool   { return readLeaks() }
