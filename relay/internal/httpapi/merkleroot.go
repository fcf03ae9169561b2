package httpapi

import (
	"encoding/hex"
	"net/http"
	"net/url"

	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/refusal"
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

// checkQuery refuses a query string that does not parse, because the generated server
// would drop the broken part. It also refuses a mint that the pool does not have; no
// mint means the pool's first.
func (a *api) checkQuery(r *http.Request, mint *string) error {
	const longest = 1024
	if n := len(r.URL.RawQuery); n > longest {
		return refusal.New(refusal.InvalidRequest, "the query string has %d characters: expected at most %d", n, longest)
	}
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
		return refusal.New(refusal.InvalidRequest, "the query string is malformed: expected name=value pairs joined by &, percent-encoded")
	}
	if mint == nil || *mint == "" {
		return nil
	}
	for _, m := range a.Info.Profile.Mints {
		if len(*mint) > maxAddressLength {
			break
		}
		if m.Address.String() == *mint {
			return nil
		}
	}
	return refusal.New(refusal.UnknownMint, "mint is not one of this pool's: expected an address that GET / lists under pool.mints, or none; received %d characters", len(*mint))
}
