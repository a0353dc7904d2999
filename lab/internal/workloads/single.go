package workloads

//go:generate go run github.com/cheapgo/cheap/internal/replay/expand -o single_local.go single_heap.go Heap=Local

// The constants of the workloads of one thread. native.h has the same.
const (
	simpleLeast, simpleMost   = 16, 512  // bytes, each size twice the one before
	simpleBatch, simplePlaces = 25, 1600 // blocks in a batch, four times as many each

	allocTestPlaces    = 1 << 16
	allocTestLeast     = 8      // bytes
	allocTestDoublings = 1 << 6 // six, to 1 KiB

	shThird         = 1 << 15 // places
	shLeast, shMost = 8, 1000 // bytes

	mixturePlaces   = 10_000
	mixtureAlign    = 64
	mixtureReallocs = 20 // of 100, where there is a block
	mixtureMallocs  = 85 // the rest up to here, of 100
	mixtureCallocs  = 95 // and from there up to here; the others are aligned

	toothBytes            = 16 << 20 // of a tooth
	toothLeast, toothMost = 32, 512  // bytes, the least of a tooth
	toothPlaces           = toothBytes/toothLeast + 1
	toothSurvivors        = 50      // one block in 50
	keptPlaces            = 1 << 15 // for survivors

	largePlaces           = 4
	largeLeast, largeMost = 5 << 20, 25 << 20 // bytes
	largePage             = 4096
)

// allocTestPlace returns one of the first fifth of the places four times in five.
func allocTestPlace(r *random) uint32 {
	const few = allocTestPlaces / 5
	if r.next()%5 < 4 {
		return r.below(few)
	}
	return few + r.below(allocTestPlaces-few)
}

// shRun is how many blocks of a size follow each other.
func shRun(size uint32) uint32 { return 1 + 2000/size }

func mixtureSize(r *random) uint32 {
	switch x := r.below(1000); {
	case x < 800:
		return 16 + r.below(240)
	case x < 950:
		return 256 + r.below(3840)
	case x < 995:
		return 4096 + r.below(28<<10)
	}
	return 32<<10 + r.below(224<<10)
}
