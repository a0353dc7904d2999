package batch

// An Unclosed adds up entries that are neither closed nor found by the collector.
type Unclosed struct {
	N       int64
	Origins map[Stack]int64 // of batches that record each origin
	Labels  []string
}

// Add adds the entries of b that are neither closed nor found, if b is sealed.
func (u *Unclosed) Add(b *Batch) {
	if !b.Sealed() {
		return
	}
	for _, e := range b.OpenOnes(nil) {
		u.N++
		if b.Every() {
			if u.Origins == nil {
				u.Origins = map[Stack]int64{}
			}
			u.Origins[e.Origin.Stack()]++
		}
		if e.Label != "" {
			u.Labels = append(u.Labels, e.Label)
		}
	}
}

// Left adds up the entries of sealed batches that are not released: those in Use,
// those that wait for children, and the others.
func Left(batches []*Batch) (inUse, waiting, others int64) {
	for _, b := range batches {
		gone, _ := b.Gone()
		others += int64(b.n) - int64(gone)
		b.mu.Lock()
		for i := range b.n {
			if s := b.State(i); s&usesMask != 0 {
				inUse++
			} else if s&kinBit != 0 && b.families[i].waits() {
				waiting++
			}
		}
		b.mu.Unlock()
	}
	return inUse, waiting, others - inUse - waiting
}
