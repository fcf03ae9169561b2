package keys

import "context"

// isAdopted reports whether an earlier RelayPool of this name left the key: the key is older
// than this RelayPool.
func (d *decision) isAdopted(k *Key) bool {
	return k.Created.Before(d.Pool.CreationTimestamp.Time)
}

// findNewest returns the highest revision with a key, or -1 if there is none. known is false if
// the RelayPool is observed for the first time. In that case an earlier RelayPool of the same
// name may have left keys. Their revisions may be much lower than the spec's, or higher if the
// new spec starts again from 0. Such keys are adopted: their labels say whose they are, they have no
// owner, and no new key is made under a name in use.
func (s *search) findNewest(ctx context.Context, known bool) (int32, error) {
	wanted := wantedRevision(s.pool)
	top := int32(-1)
	if err := s.readRevision(ctx, wanted); err != nil {
		return 0, err
	}
	for _, k := range s.keys {
		top = max(top, k.Revision)
	}
	lowest := max(0, wanted-1)
	if !known {
		lowest = max(0, wanted-maxMissingRevisions)
	}
	for r := wanted - 1; top < 0 && r >= lowest; r-- {
		exists, err := s.readSecret(ctx, r, 0)
		if err != nil {
			return 0, err
		}
		if exists {
			top = r
		}
	}
	for r := max(top, wanted) + 1; r <= maxRevision; r++ {
		exists, err := s.readSecret(ctx, r, 0)
		if err != nil {
			return 0, err
		}
		if !exists {
			break
		}
		top = r
	}
	return top, nil
}
