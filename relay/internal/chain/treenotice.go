package chain

import "time"

// NoticeChange is called when an endpoint reports that the tree account has changed at the slot. A known
// tree of an earlier slot then counts as too old for every caller of Tree, because a root that reaches
// clients late has less time left; see also newTreeTimeout. slot 0 means that it is not known.
func (p *PoolReader) NoticeChange(slot uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slot > 0 && p.last != nil && !p.last.Doubtful && p.last.Slot >= slot {
		return
	}
	p.noticedAt = p.now()
}

func (p *PoolReader) lastNotice() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.noticedAt
}
