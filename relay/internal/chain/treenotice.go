package chain

import "time"

// NoticeChange is called when an endpoint reports that the tree account has changed. The known tree
// then counts as too old for every caller, and the next read does not wait for the whole MinInterval:
// half of a root's life may pass before a client has it.
func (p *PoolReader) NoticeChange() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noticedAt = p.now()
	close(p.noticed)
	p.noticed = make(chan struct{})
}

func (p *PoolReader) lastNotice() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.noticedAt
}

// pause waits until the next read may start, when the last one started at the given time.
func (p *PoolReader) pause(last time.Time) {
	for !last.IsZero() {
		wait, noticed := p.untilNextRead(last)
		if wait <= 0 {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-noticed:
			timer.Stop()
		}
	}
}

// untilNextRead returns the time until the next read may start. An endpoint that reports changes
// without end causes at most four times the usual number of reads.
func (p *PoolReader) untilNextRead(last time.Time) (wait time.Duration, noticed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	interval := p.interval
	if p.noticedAt.After(last) {
		interval /= 4
	}
	return interval - p.now().Sub(last), p.noticed
}
