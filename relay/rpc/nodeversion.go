package rpc

import (
	"context"

	"github.com/relaypool/relaypool/relay/onchain"
)

// Version reads the release of the validator that the endpoint runs, such as 2.3.0.
func (c *Client) Version(ctx context.Context) (string, error) {
	const method = "getVersion"
	result, err := read[struct {
		Core string `json:"solana-core"`
	}](ctx, c, method)
	if err != nil {
		return "", err
	}
	if result.Core == "" || len(result.Core) > 64 {
		return "", onchain.Malformed(method, "solana-core has %d characters, expected 1 to 64", len(result.Core))
	}
	return result.Core, nil
}
