package httpapi

import (
	"context"
	"encoding/hex"
	"net/http"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/internal/viewingkey"
	"github.com/relaypool/relaypool/relay/openapi"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// serviceInfo is the service information document, which nothing changes while
// the relay runs.
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
			NoteEnvelopeMaxBytes: openapi.NoteEnvelopeLimits{
				Transfer: i.NoteBounds[shieldpool.KindTransfer], Withdrawal: i.NoteBounds[shieldpool.KindWithdrawal],
				Swap: max(0, i.NoteBounds[shieldpool.KindSwap]),
			},
		},
		Pool: openapi.PoolInfo{
			ProgramID: i.Profile.ProgramID.String(), Profile: i.Profile.Name,
			Mints: mints, ExtData: openapi.PoolInfoExtData(i.Profile.ExtData),
		},
		Swaps: swapsInfo(i),
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
	a.answer(w, r, http.StatusOK, a.info)
}

// GetComplianceKey returns the key that viewing keys are sealed to.
func (a *api) GetComplianceKey(w http.ResponseWriter, r *http.Request) {
	a.answer(w, r, http.StatusOK, openapi.ComplianceKey{
		Algorithm: openapi.ComplianceKeyAlgorithmX25519SealedBox,
		PublicKey: hex.EncodeToString(a.Info.ComplianceKey[:]),
		KeyID:     viewingkey.KeyID(a.Info.ComplianceKey),
	})
}

// healthAge is how long a check of the relay's parts is reused: each check
// makes RPC calls, and GET /health needs no API key.
const healthAge = time.Second

// health is the last check of the relay's parts.
type health struct {
	mu     sync.Mutex
	report *HealthReport
	at     time.Time
}

// look returns the last report. Requests during a check wait for it; one that
// leaves does not cancel it for the others.
func (a *api) look(ctx context.Context) HealthReport {
	a.health.mu.Lock()
	defer a.health.mu.Unlock()
	if a.health.report == nil || a.Now().Sub(a.health.at) >= healthAge {
		ctx, cancel := a.call(context.WithoutCancel(ctx))
		defer cancel()
		report := a.Health.Check(ctx)
		a.health.report, a.health.at = &report, a.Now()
	}
	return *a.health.report
}

// GetHealth is public: it returns the relay's health, and only the status of each part.
func (a *api) GetHealth(w http.ResponseWriter, r *http.Request) {
	report := a.look(r.Context())
	checks := make(map[string]openapi.HealthCheck, len(report.Checks))
	for name, check := range report.Checks {
		checks[name] = openapi.HealthCheck{Status: check.Status}
	}
	a.answerHealth(w, r, HealthReport{Status: report.Status, Checks: checks})
}

// healthDetails is for the operator: it also returns what is wrong with each part.
func (a *api) healthDetails(w http.ResponseWriter, r *http.Request) {
	a.answerHealth(w, r, a.look(r.Context()))
}

// answerHealth answers 503 only when the relay is down.
func (a *api) answerHealth(w http.ResponseWriter, r *http.Request, report HealthReport) {
	status := http.StatusOK
	if report.Status == openapi.HealthStatusDown {
		status = http.StatusServiceUnavailable
	}
	a.answer(w, r, status, openapi.Health{
		Status: report.Status, Checks: report.Checks, Version: a.Info.Version, Timestamp: a.Now().UTC(),
	})
}

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
