package txmgr

import "sync"

// laneResults keeps how large a share of each lane's latest attempts landed.
type laneResults struct {
	mu     sync.Mutex
	shares map[string]float64
}

// resultWeight is the weight of the newest result in a share: about the last 16 count.
const resultWeight = 1.0 / 16

// observe counts an attempt that landed, or did not. Attempts without a lane do not count.
func (r *laneResults) observe(lane string, landed bool) {
	if lane == "" {
		return
	}
	result := 0.0
	if landed {
		result = 1
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shares == nil {
		r.shares = map[string]float64{}
	}
	share, known := r.shares[lane]
	if !known {
		share = 1
	}
	r.shares[lane] = share + (result-share)*resultWeight
}

// landedShare is the share of the lane's latest attempts that landed; 1 before the first result.
func (r *laneResults) landedShare(lane string) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if share, known := r.shares[lane]; known {
		return share
	}
	return 1
}
