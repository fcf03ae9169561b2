package httpapi

import (
	"context"
	"encoding/hex"
	"net/http"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/refusal"
)

// GetMerkleRoot reads the newest root on the chain.
func (a *api) GetMerkleRoot(w http.ResponseWriter, r *http.Request, params openapi.GetMerkleRootParams) {
	ctx, cancel := a.call(r.Context())
	defer cancel()
	root, err := a.merkleRoot(ctx, r, params)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.answer(w, r, http.StatusOK, root)
}

func (a *api) merkleRoot(ctx context.Context, r *http.Request, params openapi.GetMerkleRootParams) (openapi.MerkleRoot, error) {
	var mint string
	if params.Mint != nil {
		mint = *params.Mint
	}
	commitment := openapi.GetMerkleRootParamsCommitmentConfirmed
	if params.Commitment != nil {
		commitment = *params.Commitment
	}
	if err := a.checkQuery(r, params.Mint); err != nil {
		return openapi.MerkleRoot{}, err
	}
	switch commitment {
	case openapi.GetMerkleRootParamsCommitmentConfirmed:
		root, err := a.Tree.Root(ctx, mint)
		return answerOf(root), err
	case openapi.GetMerkleRootParamsCommitmentProcessed:
		p, err := a.ProcessedCommitments(ctx)
		root, from := answerOf(p.Root), int64(p.FromIndex) //nolint:gosec // the tree has 2^32 leaves
		leaves := make([]string, len(p.Leaves))
		for i, l := range p.Leaves {
			leaves[i] = hex.EncodeToString(l[:])
		}
		root.FromIndex, root.Leaves = &from, &leaves
		return root, err
	default:
		return openapi.MerkleRoot{}, refusal.New(refusal.InvalidRequest, "commitment has an unknown value: expected confirmed or processed, or none for confirmed")
	}
}

func answerOf(root onchain.Root) openapi.MerkleRoot {
	return openapi.MerkleRoot{
		Root: hex.EncodeToString(root.Root[:]), MerkleTree: root.Tree.String(),
		NextIndex: int64(root.NextIndex), //nolint:gosec // the tree has 2^32 leaves
		Slot:      int64(root.Slot),      //nolint:gosec // slots stay far below 2^63
	}
}
