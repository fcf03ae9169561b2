package httpapi

import (
	"context"
	"crypto/sha256"

	"github.com/relaypool/relaypool/relay/refusal"
)

// exchange is what the handlers of one request share.
type exchange struct {
	id string
	// code is the refusal that was sent, if any.
	code refusal.Code
	// client is the hash of the valid API key that the client sent; zero without one.
	client [sha256.Size]byte
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{}
}
