package bank

// OnSlot calls fn after every change of the open slot (Advance, Skip, Fork). The
// chain waits for fn, which must be quick and must not call the bank. No call
// starts after cancel.
func (b *Bank) OnSlot(fn func()) (cancel func()) {
	b.leaderMu.Lock()
	defer b.leaderMu.Unlock()
	id := new(byte)
	b.onSlot[id] = fn
	return func() {
		b.leaderMu.Lock()
		defer b.leaderMu.Unlock()
		delete(b.onSlot, id)
	}
}

// slotChanged calls the functions of OnSlot. The caller holds leaderMu, and not mu.
func (b *Bank) slotChanged() {
	for _, fn := range b.onSlot {
		fn()
	}
}
