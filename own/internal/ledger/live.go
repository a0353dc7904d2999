package ledger

// An Entry describes an open entry.
type Entry struct {
	Label  string
	Size   int64
	Uses   int
	Origin *Origin // or nil
}

// OpenOnes appends the open entries of the batch, which may be open itself, to buf. It
// appends nothing if the collector has found the batch.
func (l *Ledger) OpenOnes(buf []Entry) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return buf
	}
	// An entry that is not in use has the state 0. A window writes the state last.
	for i := range uint32(len(l.States)) {
		s := l.State(i)
		if s&Open == 0 {
			continue
		}
		e := Entry{Label: l.labels[i], Size: SizeOf(s), Uses: int(s & usesMask >> stateUses)}
		switch {
		case l.origins != nil:
			e.Origin = l.origins[i]
		case l.sampled != nil && i == l.SampleAt:
			e.Origin = l.sampled
		}
		buf = append(buf, e)
	}
	return buf
}

// SetLabel sets the label of an entry, if it is open.
func (l *Ledger) SetLabel(i uint32, label string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.State(i)&Open == 0 {
		return
	}
	if l.labels == nil {
		l.labels = map[uint32]string{}
	}
	l.labels[i] = label
}
