package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/trapdoor"
	"github.com/relaypool/relaypool/relay/internal/chain"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// migratedStore returns a store with its own, migrated database.
func migratedStore(t *testing.T) *store.Store {
	t.Helper()
	db := pgtest.Pool(t)
	noError(t, store.Migrate(t.Context(), db, slog.New(slog.DiscardHandler)))
	s, err := store.New(db)
	noError(t, err)
	return s
}

// TestEndedAttemptsAreSummed: of two attempts, one expires later than the other.
func TestEndedAttemptsAreSummed(t *testing.T) {
	t.Parallel()
	s, ctx, w := migratedStore(t), t.Context(), uuid.New()
	_, err := s.Heartbeat(ctx, txmgr.Worker{ID: w}, time.Minute)
	noError(t, err)
	for n := range byte(2) {
		call := &shieldpool.Call{
			Proof: make([]byte, shieldpool.ProofLength), Inputs: &shieldpool.PublicInputs{PublicAmount: -9, Nullifiers: [2][32]byte{{31: n + 1}}},
			Destination: shieldpool.Destination{Recipient: solana.PublicKey{1}},
		}
		sub, err := s.Accept(ctx, &submission.Submission{ID: uuid.New(), Kind: call.Kind(), Call: call, ProofAEncoding: "plain"}, nil, &w)
		noError(t, err)
		noError(t, s.RecordAttempt(ctx, sub.Lease(), txmgr.Attempt{
			Signature: solana.Signature{n + 1}, Raw: []byte{1}, BlockhashSlot: 3, LastValidBlockHeight: 100 + 900*uint64(n), Purpose: txmgr.PurposeTransact, Cost: 5, Fee: 5,
		}))
		noError(t, s.Release(ctx, sub.Lease(), time.Hour, txmgr.HoldExpiry))
	}
	height := uint64(50)
	search := func(_ context.Context, signatures []solana.Signature) (onchain.SearchResult, error) {
		height += 50 // passes the first attempt's height soon, and the second one's many searches later
		return onchain.SearchResult{Statuses: make([]*onchain.Status, len(signatures)), Slot: height, FinalizedSlot: height, FinalizedHeight: height, FirstAvailable: 1}, nil
	}
	var out bytes.Buffer
	c := &attemptsCmd{}
	c.Wait = time.Minute
	noError(t, c.end(&environment{Context: ctx, out: &out, pace: time.Millisecond}, s, search))
	if !strings.HasPrefix(out.String(), "Ended: 2. No submission waits") {
		t.Errorf("output %q, want two ended attempts", out.String())
	}
}

// TestAccountingIsIncompleteWhileBalanceIsUnexplained: an endpoint's history may be behind its
// balances. If the sweep ended there, the missing transactions would never be in a ledger.
func TestAccountingIsIncompleteWhileBalanceIsUnexplained(t *testing.T) {
	t.Parallel()
	vk, err := trapdoor.New("books", shieldpool.SignalCount).VerifyingKey()
	noError(t, err)
	net, err := localnet.New(localnet.Options{VerifyingKey: vk, SlotDuration: 10 * time.Millisecond})
	noError(t, err)
	t.Cleanup(func() { noError(t, net.Close()) })
	server := httptest.NewServer(net.Endpoint("late"))
	t.Cleanup(server.Close)
	net.Start(t.Context())
	endpoints, err := chain.NewEndpoints(chain.EndpointsOptions{
		Endpoints: []chain.Endpoint{{Name: "late", URL: server.URL, WebSocketURL: chain.NoWebSocket, Roles: []chain.Role{chain.RoleRead, chain.RoleSubmit}}},
		Genesis:   localnet.GenesisHash, Now: time.Now, Rand: func() float64 { return 0 }, Log: slog.New(slog.DiscardHandler),
	})
	noError(t, err)
	t.Cleanup(endpoints.Close)
	db, payer := migratedStore(t).Ledger(), solana.NewWallet().PublicKey()
	complete := func() bool {
		b := &sweepAccounting{ledger: db, endpoints: endpoints, log: slog.New(slog.DiscardHandler)}
		done, err := b.Complete(t.Context(), []solana.PublicKey{payer})
		noError(t, err)
		return done
	}
	if !complete() {
		t.Error("the accounting of an unused payer is incomplete")
	}
	noError(t, net.Endpoint("late").SetFaults([]fault.Rule{{Method: "getSignaturesForAddress", Empty: true}}))
	noError(t, net.Fund(payer, 7_000_000))
	net.Finalize()
	if complete() {
		t.Error("the ledger is complete although no history explains the balance")
	}
	noError(t, net.Endpoint("late").SetFaults(nil))
	if !complete() {
		t.Error("the ledger is incomplete although the history explains the balance")
	}
}
