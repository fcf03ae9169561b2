package httpapi

import (
	"encoding/hex"
	"net/http"

	"github.com/relaypool/relaypool/relay/internal/viewingkey"
	"github.com/relaypool/relaypool/relay/openapi"
)

// GetComplianceKey returns the key that viewing keys are sealed to.
func (a *api) GetComplianceKey(w http.ResponseWriter, r *http.Request) {
	a.answer(w, r, http.StatusOK, openapi.ComplianceKey{
		Algorithm: openapi.ComplianceKeyAlgorithmX25519SealedBox,
		PublicKey: hex.EncodeToString(a.Info.ComplianceKey[:]),
		KeyID:     viewingkey.KeyID(a.Info.ComplianceKey),
	})
}
