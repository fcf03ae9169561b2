package main

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/store"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// TestAttempts: an attempt whose last valid height is years away is listed. --end ends it
// when an endpoint shows 150 blocks after the attempt's blockhash.
func TestAttempts(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	pool, err := store.Open(t.Context(), url, store.TLSFiles{}, 2)
	noError(t, err)
	t.Cleanup(pool.Close)
	noError(t, store.Migrate(t.Context(), pool, slog.New(slog.DiscardHandler)))
	urlFile := file(t, url)
	attempts := func(more ...string) (code int, out, stderr string) {
		return command(t, "", append([]string{"attempts", "--database-url-file=" + urlFile, "--log-level=error"}, more...)...)
	}
	if code, out, _ := attempts(); code != 0 || !strings.Contains(out, "No attempt that may still land was signed more than 5m0s ago") {
		t.Errorf("without attempts: exit code %d and output %q, want 0 and the text that there is no attempt", code, out)
	}

	s, err := store.New(pool)
	noError(t, err)
	ctx, w := t.Context(), uuid.New()
	_, err = s.Heartbeat(ctx, txmgr.Worker{ID: w}, time.Minute)
	noError(t, err)
	call := &shieldpool.Call{
		Proof: make([]byte, shieldpool.ProofLength), Inputs: &shieldpool.PublicInputs{PublicAmount: -9, Nullifiers: [2][32]byte{{31: 1}}},
		Destination: shieldpool.Destination{Recipient: solana.PublicKey{1}},
	}
	sub, err := s.Accept(ctx, &submission.Submission{ID: uuid.New(), Kind: call.Kind(), Call: call, ProofAEncoding: "plain"}, nil, &w)
	noError(t, err)
	lease := sub.Lease()
	noError(t, s.RecordAttempt(ctx, lease, txmgr.Attempt{
		Signature: solana.Signature{7}, Raw: []byte{1}, FeePayer: solana.PublicKey{2}, BlockhashSlot: 3, LastValidBlockHeight: 22_000_000, Purpose: txmgr.PurposeTransact, Cost: 5, Fee: 5,
	}))
	noError(t, s.Release(ctx, lease, time.Hour, txmgr.HoldExpiry))
	_, err = pool.Exec(ctx, `UPDATE attempts SET created_at = now() - interval '6 minutes'`)
	noError(t, err)

	var listed []attemptLine
	code, out, stderr := attempts("--json")
	noError(t, json.Unmarshal([]byte(out), &listed))
	if code != 0 || len(listed) != 1 || listed[0].RequestID != sub.ID || listed[0].LastValidBlockHeight != 22_000_000 || listed[0].WaitsFor != txmgr.HoldExpiry || listed[0].Age < 300 {
		t.Fatalf("exit code %d, listed %+v; want the one attempt: %s", code, listed, stderr)
	}
	if code, out, _ := attempts(); code != 0 || !strings.Contains(out, solana.Signature{7}.String()) {
		t.Errorf("exit code %d, want 0 and a table with the signature: %s", code, out)
	}
	if code, out, _ := attempts("--older=10m"); code != 0 || strings.Contains(out, "22000000") {
		t.Errorf("--older=10m: exit code %d, want 0 and no younger attempt: %s", code, out)
	}

	if code, _, stderr := attempts("--end"); code == 0 || !strings.Contains(stderr, "expected RPC endpoints") {
		t.Errorf("--end without endpoints: exit code %d, error output %q", code, stderr)
	}
	vk, err := os.ReadFile(verifyingKey)
	noError(t, err)
	net, err := localnet.New(localnet.Options{VerifyingKey: vk, SlotDuration: 10 * time.Millisecond})
	noError(t, err)
	t.Cleanup(func() { noError(t, net.Close()) })
	rpc, err := net.Listen("127.0.0.1:0")
	noError(t, err)
	net.Advance(60) // finalized blocks after the blockhash's slot, not yet 150
	if code, out, stderr := attempts("--end", "--wait=100ms", "--rpc-url="+rpc); code != commandline.ExitFailed || !strings.Contains(out, "Undecided: 1") || !strings.Contains(stderr, "have expired") {
		t.Errorf("on a stopped chain: exit code %d, output %q, want 1 and an undecided attempt: %s", code, out, stderr)
	}
	net.Start(t.Context())
	if code, out, stderr := attempts("--end", "--wait=2m", "--rpc-url="+rpc); code != 0 || !strings.Contains(out, "Ended: 1") {
		t.Errorf("on a running chain: exit code %d, output %q, want 0 and an ended attempt: %s", code, out, stderr)
	}
	var dead, due bool
	noError(t, pool.QueryRow(ctx, `SELECT a.dead, s.due_at <= now() AND s.hold_reason IS NULL AND s.lease_owner IS NULL
		FROM attempts a JOIN submissions s ON s.id = a.submission_id`).Scan(&dead, &due))
	if !dead || !due {
		t.Errorf("the attempt is dead: %v, its submission due: %v, want both", dead, due)
	}
}
