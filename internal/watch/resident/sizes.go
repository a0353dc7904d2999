package resident

// A Declared compares the sizes that pools declare with what the process has. All are bytes.
type Declared struct {
	Pools int64 // what pools and accounts of package pace declare
	C     int64 // what C has in use, and what malloc has free, where that is not told apart
	Most  int64 // at most so much can be of pools: what is neither Go's nor the program's
}

// Declared compares the sizes of the pools of a reading with its table.
func (r *Reading) Declared(t *Table) Declared {
	d := Declared{C: r.heldByC(t), Most: t.Resident + t.Swap}
	if r.C.Known {
		d.C = min(d.C, r.C.Live) // read when the pools were, and mappings were read before
	}
	for _, p := range r.Pools {
		d.Pools += p.Bytes
	}
	for _, k := range []Kind{GoInUse, GoIdle, GoStacks, GoRuntime, Program, Library} {
		d.Most -= t.whole(k)
	}
	d.Most = max(d.Most, 0)
	return d
}

// TooSmall reports whether C has twice what is declared, and 16 MiB more. Others may have allocated that.
func (d Declared) TooSmall() bool {
	return d.Pools > 0 && d.C >= 2*d.Pools && d.C-d.Pools >= leastFault
}

// TooLarge reports whether twice what can be of pools is declared, and 16 MiB more. Pages that were never
// touched are declared, and are not there.
func (d Declared) TooLarge() bool {
	return d.Pools >= 2*d.Most && d.Pools-d.Most >= leastFault
}

// heldByC returns the bytes that the verdicts say C has.
func (r *Reading) heldByC(t *Table) int64 {
	if _, known := r.inUse(); known {
		return t.whole(CInUse)
	}
	return t.whole(CInUse) + t.whole(MallocAll) + t.whole(Unseparated)
}
