package app

import (
	"testing"

	"github.com/relaypool/relaypool/relay/contract"
)

// Proxies end a request after contract.LongestRequest.
func TestALongListFitsTheTimeOfARequest(t *testing.T) {
	t.Parallel()
	if most := contract.CallTimeout + listTime; most > contract.LongestRequest {
		t.Errorf("GET /commitments may take %v, and proxies are told %v", most, contract.LongestRequest)
	}
}
