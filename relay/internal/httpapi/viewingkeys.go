package httpapi

import (
	"net/http"

	"github.com/relaypool/relaypool/relay/openapi"
)

// RegisterViewingKey registers a viewing key.
func (a *api) RegisterViewingKey(w http.ResponseWriter, r *http.Request) {
	raw, err := readBody(w, r)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	reg, err := decodeRegistration(raw)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	reg.Address = a.clientAddress(r)
	ctx, cancel := a.call(r.Context())
	defer cancel()
	identifier, err := a.ViewingKeys.Register(ctx, reg)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	a.answer(w, r, http.StatusOK, openapi.RegisterAnswer{
		Success: true, Data: openapi.RegisteredViewingKey{Registered: true, Identifier: identifier},
	})
}
