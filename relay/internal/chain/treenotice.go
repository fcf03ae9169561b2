package chain

import (
	"time"

	"github.com/relaypool/relaypool/relay/onchain"
)

// NoticeChange is called when an endpoint reports that the tree account has changed at the slot. A known
// tree of an earlier slot then counts as too old for every caller of Tree, because a root that reaches
// clients late has less time left; see also newTreeTimeout. slot 0 means that it is not known.
func (p *PoolReader) NoticeChange(slot uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slot > 0 && p.last != nil && !p.last.Doubtful && p.last.Slot >= slot {
		return
	}
	if old := p.noticed; slot > 0 && !old.at.IsZero() && (p.last == nil || !old.has(p.last)) && (old.slot == 0 || old.slot > slot) {
		slot = old.slot // which is still to be read
	}
	p.noticed = notice{p.now(), slot}
}

// notice is a report that the tree has changed; slot is 0 if it is not known when.
type notice struct {
	at   time.Time
	slot uint64
}

// has reports whether the known tree has the change. Another process may have read it for this one before the
// notice came.
func (n notice) has(known *onchain.Snapshot) bool {
	return !known.At.Before(n.at) || n.slot > 0 && !known.Doubtful && known.Slot >= n.slot
}
