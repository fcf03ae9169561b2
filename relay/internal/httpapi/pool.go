package httpapi

import (
	"encoding/hex"
	"net/http"
	"net/url"

	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/refusal"
)

// maxCommitments is the most leaves in one answer: some ten megabytes.
const maxCommitments = 100_000

// ListCommitments lists published leaves.
func (a *api) ListCommitments(w http.ResponseWriter, r *http.Request, params openapi.ListCommitmentsParams) {
	if err := a.checkQuery(r, params.Mint); err != nil {
		a.fail(w, r, err)
		return
	}
	from, limit, err := page(params)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	ctx, cancel := a.call(r.Context())
	defer cancel()
	leaves, err := a.Commitments.List(ctx, from, limit)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	list := openapi.CommitmentList{Commitments: make([]openapi.Commitment, len(leaves)), Count: len(leaves)}
	for i, leaf := range leaves {
		list.Commitments[i] = openapi.Commitment{
			Index:      int64(leaf.Index), //nolint:gosec // the tree has 2^32 leaves
			Commitment: hex.EncodeToString(leaf.Commitment[:]),
		}
	}
	a.answer(w, r, http.StatusOK, list)
}

func page(params openapi.ListCommitmentsParams) (from uint64, limit int, err error) {
	start := params.FromIndex
	if start == nil {
		start = params.FromIndexOld
	} else if params.FromIndexOld != nil && *params.FromIndexOld != *start {
		return 0, 0, refusal.New(refusal.InvalidRequest, "from_index and fromIndex differ: expected one of them; fromIndex is the older name")
	}
	if start != nil {
		if *start < 0 {
			return 0, 0, refusal.New(refusal.InvalidRequest, "from_index is negative: expected 0 or more")
		}
		from = uint64(*start)
	}
	limit = maxCommitments
	if params.Limit != nil {
		if *params.Limit < 1 {
			return 0, 0, refusal.New(refusal.InvalidRequest, "limit is below one: expected 1 to %d", maxCommitments)
		}
		limit = int(min(*params.Limit, maxCommitments))
	}
	return from, limit, nil
}

// GetMerkleRoot reads the newest root on the chain.
func (a *api) GetMerkleRoot(w http.ResponseWriter, r *http.Request, params openapi.GetMerkleRootParams) {
	if err := a.checkQuery(r, params.Mint); err != nil {
		a.fail(w, r, err)
		return
	}
	var mint string
	if params.Mint != nil {
		mint = *params.Mint
	}
	ctx, cancel := a.call(r.Context())
	defer cancel()
	root, err := a.Tree.Root(ctx, mint)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.answer(w, r, http.StatusOK, openapi.MerkleRoot{
		Root: hex.EncodeToString(root.Root[:]), MerkleTree: root.Tree.String(),
		NextIndex: int64(root.NextIndex), //nolint:gosec // the tree has 2^32 leaves
		Slot:      int64(root.Slot),      //nolint:gosec // slots stay far below 2^63
	})
}

// checkQuery refuses a query string that does not parse, of which the generated
// server would drop the broken part, and a mint that the pool does not have; no
// mint means the first.
func (a *api) checkQuery(r *http.Request, mint *string) error {
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
		return refusal.New(refusal.InvalidRequest, "the query string is malformed: expected name=value pairs joined by &, percent-encoded")
	}
	if mint == nil || *mint == "" {
		return nil
	}
	for _, m := range a.Info.Profile.Mints {
		if m.Address.String() == *mint {
			return nil
		}
	}
	return refusal.New(refusal.UnknownMint, "mint is not one of this pool's: expected an address that GET / lists under pool.mints, or none; received %d characters", len(*mint))
}
