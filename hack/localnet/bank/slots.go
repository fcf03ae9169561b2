package bank

import "sync"

// slotsKept bounds what a subscriber can be behind, in changes.
const slotsKept = 1024

// SlotChange tells of a new open slot.
type SlotChange struct {
	// Slot has just been opened, on top of Parent. Root is the newest finalized
	// slot.
	Slot, Parent, Root uint64
}

// slotFeed tells its subscribers of slot changes, each in a goroutine of its
// own, so that none can hold up the chain or another.
type slotFeed struct {
	mu          sync.Mutex
	subscribers map[*slotSubscriber]struct{}
}

// slotSubscriber is the mailbox of one subscriber.
type slotSubscriber struct {
	wake chan struct{}
	done chan struct{}

	mu      sync.Mutex
	changes []SlotChange
}

// OnSlot calls fn after every change of the open slot (Advance, Skip, Fork) in
// order, one call after another, in a goroutine of its own and without a lock
// of the bank. A subscriber that is slow delays itself alone: when it is more
// than 1024 changes behind it loses the oldest. After cancel no new call
// begins; one that is running may still be.
func (b *Bank) OnSlot(fn func(SlotChange)) (cancel func()) {
	s := &slotSubscriber{wake: make(chan struct{}, 1), done: make(chan struct{})}
	b.slots.mu.Lock()
	defer b.slots.mu.Unlock()
	if b.slots.subscribers == nil {
		b.slots.subscribers = make(map[*slotSubscriber]struct{})
	}
	b.slots.subscribers[s] = struct{}{}
	go s.deliver(fn)
	return sync.OnceFunc(func() {
		b.slots.mu.Lock()
		defer b.slots.mu.Unlock()
		delete(b.slots.subscribers, s)
		close(s.done)
	})
}

func (f *slotFeed) publish(changes ...SlotChange) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.subscribers {
		s.put(changes)
	}
}

func (s *slotSubscriber) put(changes []SlotChange) {
	s.mu.Lock()
	s.changes = append(s.changes, changes...)
	if lost := len(s.changes) - slotsKept; lost > 0 {
		s.changes = s.changes[lost:]
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default: // it is awake and will see them
	}
}

func (s *slotSubscriber) take() []SlotChange {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := s.changes
	s.changes = nil
	return changes
}

func (s *slotSubscriber) deliver(fn func(SlotChange)) {
	for {
		select {
		case <-s.done:
			return
		case <-s.wake:
		}
		for _, change := range s.take() {
			select {
			case <-s.done:
				return
			default:
				fn(change)
			}
		}
	}
}

// slotChange tells of the open slot; the caller holds mu.
func (b *Bank) slotChange() SlotChange {
	open := b.chain.open()
	return SlotChange{Slot: open.Slot, Parent: open.ParentSlot, Root: b.settled(open, Finalized).Slot}
}
