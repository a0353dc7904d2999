package batch

// An OpenEntry describes an open entry.
type OpenEntry struct {
	Label  string
	Size   int64
	Uses   int
	Origin *Origin // or nil
}

// OpenOnes appends the open entries of the batch, which may be open itself, to buf. It
// appends nothing if the collector has found the batch.
func (b *Batch) OpenOnes(buf []OpenEntry) []OpenEntry {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.dead {
		return buf
	}
	// An entry that is not in use has the state 0. A window writes the state last.
	for i := range b.size {
		s := b.State(i)
		if s&Open == 0 || b.found(i) {
			continue
		}
		e := OpenEntry{Size: SizeOf(s), Uses: int(s & usesMask >> stateUses)}
		if b.notes != nil {
			e.Label, e.Origin = b.labels[i], b.originOf(i)
		}
		buf = append(buf, e)
	}
	return buf
}

// SetLabel sets the label of an entry, if it is open.
func (b *Batch) SetLabel(i uint32, label string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.State(i)&Open == 0 {
		return
	}
	if b.note(); b.labels == nil {
		b.labels = map[uint32]string{}
	}
	b.labels[i] = label
}
