package bank

// leaderWindow is the number of slots in a row that one leader has.
const leaderWindow = 4

// Leaders makes it as hard to get into a block as on a busy network. What a leader did not take by the
// end of its slots is lost: nobody sends it on to the next one. Both functions get the number of the
// leader's window, and always give the same answer for it.
type Leaders struct {
	// Down reports whether the leader makes no blocks.
	Down func(window uint64) bool
	// Price is the lowest price that the leader takes, in micro-lamports a unit: it has too many
	// transactions, and drops those that pay less.
	Price func(window uint64) uint64
}

func (l *Leaders) price(window uint64) uint64 {
	if l == nil {
		return 0
	}
	return l.Price(window)
}

// leaderDown reports whether the leader of the slot after so many slots is down, and counts them for
// the block of the next leader. When the leader changes, what it did not take is lost. The caller
// holds leaderMu.
func (b *Bank) leaderDown(slots uint64) bool {
	if b.opts.Leaders == nil {
		return false
	}
	b.missed += slots
	open := b.chain.newest().Slot
	window := (open + b.missed) / leaderWindow
	if window != open/leaderWindow {
		b.waiting.takeAll()
	}
	return b.opts.Leaders.Down(window)
}
