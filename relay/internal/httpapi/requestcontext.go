package httpapi

import (
	"context"
	"crypto/sha256"

	"github.com/relaypool/relaypool/relay/refusal"
)

// requestContext is what the handlers of one request share.
type requestContext struct {
	id string
	// code is the code of the refusal or error that was sent; empty when none was sent.
	code refusal.Code
	// client stands for the clients of the valid API key that was sent; zero without one. keyName is
	// the key's name.
	client  [sha256.Size]byte
	keyName string
}

type requestContextKey struct{}

func requestContextOf(ctx context.Context) *requestContext {
	if x, ok := ctx.Value(requestContextKey{}).(*requestContext); ok {
		return x
	}
	return &requestContext{}
}
