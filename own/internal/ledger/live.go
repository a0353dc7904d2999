package ledger

// An OpenEntry describes an open entry.
type OpenEntry struct {
	Label  string
	Size   int64
	Uses   int
	Origin *Origin // or nil
}

// OpenOnes appends the open entries of the batch, which may be open itself, to buf. It
// appends nothing if the collector has found the batch.
func (l *Ledger) OpenOnes(buf []OpenEntry) []OpenEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return buf
	}
	// An entry that is not in use has the state 0. A window writes the state last.
	for i := range l.size {
		s := l.State(i)
		if s&Open == 0 || l.found(i) {
			continue
		}
		e := OpenEntry{Size: SizeOf(s), Uses: int(s & usesMask >> stateUses)}
		if l.notes != nil {
			e.Label, e.Origin = l.labels[i], l.originOf(i)
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
	if l.note(); l.labels == nil {
		l.labels = map[uint32]string{}
	}
	l.labels[i] = label
}
