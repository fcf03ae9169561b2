package httpapi

import (
	"encoding/hex"
	"net/http"

	"github.com/relaypool/relaypool/relay/openapi"
)

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
