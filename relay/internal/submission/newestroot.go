package submission

import (
	"fmt"

	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// NewestRoot returns the root that a client has to prove against, whose own root is too old, and
// the leaves that it lacks. It has none when the index does not have them, or does not know the
// tree's root: then it is behind, and an older root would leave the root history sooner, or on another
// fork.
func (h *Handler) NewestRoot(root [32]byte, tree *shieldpool.TreeAccount) commitments.Recent {
	r, ok := h.Leaves.Since(root)
	if _, sameFork := h.Leaves.Since(tree.Root); !ok || !sameFork {
		return commitments.Recent{Root: tree.Root, NextIndex: tree.NextIndex}
	}
	return r
}

// StaleRoot returns the refusal for a stale root. Clients search its message for the word
// RootNotFound.
func StaleRoot(root [32]byte, newest commitments.Recent) *refusal.Refusal {
	return WithNewestRoot(refusal.New(refusal.RootNotFound,
		"RootNotFound (stale Merkle root): proof root %.8x not in root history (current root %.8x)", root[:], newest.Root[:]), newest)
}

// WithNewestRoot adds to a refusal the root to prove against and the leaves up to it, which saves
// the client requests when time is short.
func WithNewestRoot(why *refusal.Refusal, newest commitments.Recent) *refusal.Refusal {
	why = why.With("current_root", fmt.Sprintf("%x", newest.Root)).With("next_index", newest.NextIndex)
	if newest.Leaves == nil {
		return why
	}
	return why.With("from_index", newest.FromIndex).With("leaves", newest.Leaves)
}

// addLeaves replaces the newest root in the failure of a submission with a stale root by one that
// is at least as new, with the leaves up to it. These are not stored with the failure.
func addLeaves(s *Submission, index LeafIndex) {
	if s.State != Failed || s.Failure == nil || s.Failure.Code != refusal.RootNotFound {
		return
	}
	known, _ := s.Failure.Fields["next_index"].(float64) // decoded from JSON
	r, ok := index.Since(s.Call.Inputs.Root)
	if !ok || float64(r.NextIndex) < known {
		return
	}
	why := StaleRoot(s.Call.Inputs.Root, r)
	if s.RolledBack {
		why = why.With("rolled_back", true)
	}
	s.Failure = why
}
