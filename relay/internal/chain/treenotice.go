package chain

import "time"

// NoticeChange is called when an endpoint reports that the tree account has changed. The known tree
// then counts as too old for every caller: half of a root's life may pass before a client has it.
func (p *PoolReader) NoticeChange() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noticedAt = p.now()
}

func (p *PoolReader) lastNotice() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.noticedAt
}
