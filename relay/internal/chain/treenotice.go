package chain

import "time"

// NoticeChange is called when an endpoint reports that the tree account has changed. The known tree
// then counts as too old for every caller of Tree, because a root that reaches clients late has less time
// left; see also newTreeTimeout.
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
