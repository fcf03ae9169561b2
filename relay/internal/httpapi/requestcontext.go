package httpapi

import (
	"context"

	"github.com/relaypool/relaypool/relay/refusal"
)

// requestContext is what the handlers of one request share.
type requestContext struct {
	id string
	// code is the code of the refusal or error that was sent; empty when none was sent.
	code refusal.Code
	// key is the valid API key that the client sent; nil without one.
	key *APIKey
}

type requestContextKey struct{}

func requestContextOf(ctx context.Context) *requestContext {
	if x, ok := ctx.Value(requestContextKey{}).(*requestContext); ok {
		return x
	}
	return &requestContext{}
}
