package httpapi

import (
	"encoding/hex"
	"net/http"

	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// serviceInfo makes the service information document, without the limits by format. These change
// while the relay runs, so GetServiceInfo adds them to each answer.
func serviceInfo(i Info) openapi.ServiceInfo {
	mints := make([]openapi.MintInfo, len(i.Profile.Mints))
	for n, m := range i.Profile.Mints {
		mints[n] = openapi.MintInfo{Address: m.Address.String(), Field: hex.EncodeToString(m.Field[:])}
	}
	return openapi.ServiceInfo{
		Service: openapi.ServiceInfoServiceRelaypool,
		Status:  openapi.ServiceInfoStatusRunning,
		Version: i.Version,
		Build:   i.Build,
		Endpoints: map[string]string{
			"service":              "GET /",
			"transact":             "POST /transact",
			"withdraw":             "POST /withdraw",
			"transact_swap":        "POST /transact_swap",
			"status":               "GET /status/:id",
			"viewing_key_register": "POST /viewing-key/register",
			"commitments":          "GET /commitments",
			"merkle_root":          "GET /merkle-root",
			"backlog":              "GET /backlog",
			"compliance_key":       "GET /compliance-key",
			"health":               "GET /health",
		},
		Limits: openapi.Limits{
			ProofBytes: shieldpool.ProofLength, PublicInputsBytes: shieldpool.PublicInputsLength,
			EncryptedNotesMax: shieldpool.MaxNotes, BodyBytes: MaxBody,
			NoteEnvelopeMaxBytes: noteLimits(i.NoteBounds),
		},
		Pool: openapi.PoolInfo{
			ProgramID: i.Profile.ProgramID.String(), Profile: i.Profile.Name,
			Mints: mints, ExtData: openapi.PoolInfoExtData(i.Profile.ExtData),
		},
		Swaps: swapsInfo(i),
	}
}

func noteLimits(bounds map[shieldpool.Kind]int) openapi.NoteEnvelopeLimits {
	return openapi.NoteEnvelopeLimits{
		Transfer: bounds[shieldpool.KindTransfer], Withdrawal: bounds[shieldpool.KindWithdrawal], Swap: max(0, bounds[shieldpool.KindSwap]),
	}
}

func swapsInfo(i Info) openapi.SwapsInfo {
	info := openapi.SwapsInfo{
		TimeoutSlots: int64(i.Profile.SwapTimeout), //nolint:gosec // some hundreds
		Output:       openapi.SwapsInfoOutputSPLToken,
	}
	if i.Swaps != nil {
		program := i.Swaps.RouterProgram.String()
		info.Enabled, info.RouterProgram = true, &program
	}
	return info
}

// GetServiceInfo describes this relay.
func (a *api) GetServiceInfo(w http.ResponseWriter, r *http.Request) {
	info := a.info
	info.Limits.NoteEnvelopeMaxBytesByFormat = map[string]openapi.NoteEnvelopeLimits{}
	for format, bounds := range a.Info.NoteBoundsByFormat() {
		info.Limits.NoteEnvelopeMaxBytesByFormat[string(format)] = noteLimits(bounds)
	}
	a.answer(w, r, http.StatusOK, info)
}
