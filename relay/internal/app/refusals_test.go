package app

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/hack/localnet/trapdoor"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// badRequest is an invalid request and the expected refusal.
type badRequest struct {
	method, path string
	body         any
	header       []string
	status       int
	code         string
	messageParts []string
}

// backgroundMethods names the calls that a relay makes without a request.
var backgroundMethods = []string{"getMultipleAccounts", "getBalance", "getSlot", "getGenesisHash", "getSignaturesForAddress", "getTransaction", "getBlock"}

// TestRefusals sends every kind of invalid request to a relay that is ready. No request
// reaches the chain or leaves a row.
func TestRefusals(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk})
	s.waitHealthy()
	in := f.inputs(s, 5*sol, solana.PublicKey{})
	s.deposit(&shieldpool.Call{Proof: f.prove(t, in), Inputs: in})
	for name, r := range f.badRequests(t, s) {
		before, sends := s.countRows(), s.countSends()
		a := s.call(r.method, r.path, r.body, r.header...)
		t.Run(name, func(t *testing.T) { wantRefused(t, a, r.status, r.code, r.messageParts...) })
		if s.countRows() != before || s.countSends() != sends {
			t.Errorf("%s: left %d rows and sent %d transactions, want none", name, s.countRows()-before, s.countSends()-sends)
		}
	}
}

func (s *fixture) waitHealthy() {
	s.t.Helper()
	eventually(s.t, "the relay is healthy", func() bool { return s.health().body["status"] == "ok" })
}

func (s *fixture) countSends() uint64 {
	n := s.chain.Stats()
	return n["sendTransaction"] + n["simulateTransaction"]
}

// badRequests are a valid withdrawal with one fault each, and other invalid requests.
func (f *forger) badRequests(t *testing.T, s *fixture) map[string]badRequest {
	t.Helper()
	to := newKey(t).PublicKey()
	good := f.inputs(s, -sol, to)
	proof, wallet := f.prove(t, good), map[string]any{"recipient": to.String()}
	body := submissionBody(proof, good.Bytes(), wallet)
	with := func(more map[string]any) map[string]any {
		b := maps.Clone(body)
		maps.Copy(b, more)
		return b
	}
	// proven returns a request with changed inputs and a proof of these inputs.
	proven := func(change func(*shieldpool.PublicInputs)) map[string]any {
		in := *good
		change(&in)
		return submissionBody(f.prove(t, &in), in.Bytes(), wallet)
	}
	raw := func(change func([]byte)) map[string]any {
		b := good.Bytes()
		change(b)
		return submissionBody(proof, b, wallet)
	}
	post := func(b any, code string, words ...string) badRequest {
		return badRequest{http.MethodPost, "/transact", b, nil, http.StatusBadRequest, code, words}
	}
	b64 := base64.StdEncoding.EncodeToString
	text, err := json.Marshal(body)
	must(t, err)
	vault, _, err := solana.FindProgramAddress([][]byte{[]byte("vault")}, solana.SystemProgramID)
	must(t, err)
	small := f.inputs(s, -5_100_000, to)
	withAmount := func(amount int64) func(*shieldpool.PublicInputs) {
		return func(in *shieldpool.PublicInputs) { in.PublicAmount = amount }
	}
	note := func(n int) string { return b64(make([]byte, n)) }

	out := map[string]badRequest{
		"no JSON":                         post("proof", "invalid_json"),
		"an empty body":                   post("", "invalid_json"),
		"trailing garbage":                post(string(text)+"x", "invalid_json"),
		"a list instead of an object":     post("[]", "invalid_request"),
		"a number instead of text":        post(with(map[string]any{"proof_bytes": 7}), "invalid_request", "proof_bytes"),
		"no proof":                        post(map[string]any{"public_inputs": body["public_inputs"]}, "invalid_request", "proof_bytes"),
		"no public inputs":                post(map[string]any{"proof_bytes": body["proof_bytes"]}, "invalid_request", "public_inputs"),
		"base64 of the URL alphabet":      post(with(map[string]any{"proof_bytes": strings.Repeat("-_", 171) + "=="}), "invalid_encoding", "proof_bytes"),
		"base64 cut short":                post(with(map[string]any{"public_inputs": body["public_inputs"].(string)[:350]}), "invalid_encoding", "public_inputs"),
		"a proof of 255 bytes":            post(with(map[string]any{"proof_bytes": b64(proof[:255])}), "invalid_proof_length", "255", "256"),
		"inputs of 265 bytes":             post(with(map[string]any{"public_inputs": b64(make([]byte, 265))}), "invalid_public_inputs_length", "265", "264"),
		"an old client's 232 bytes":       post(with(map[string]any{"public_inputs": b64(good.Bytes()[:232])}), "invalid_public_inputs_length", "232", "264", "chainNoteHash"),
		"a field not below the modulus":   post(raw(func(b []byte) { shieldpool.FieldModulus().FillBytes(b[104:136]) }), "non_canonical_field", "nullifiers[0]"),
		"the smallest amount":             post(raw(func(b []byte) { copy(b[32:40], []byte{7: 0x80}) }), "invalid_public_amount", "smallest"),
		"equal nullifiers":                post(proven(func(in *shieldpool.PublicInputs) { in.Nullifiers[1] = in.Nullifiers[0] }), "duplicate_nullifier"),
		"no nullifier":                    post(proven(func(in *shieldpool.PublicInputs) { in.Nullifiers = [2][32]byte{} }), "no_input"),
		"a deposit":                       post(proven(withAmount(sol)), "deposit_not_relayed"),
		"a withdrawal that is all fee":    post(proven(withAmount(-5_015_045)), "amount_below_fee", "5000000"),
		"no recipient":                    post(submissionBody(proof, good.Bytes(), nil), "recipient_required"),
		"a recipient that is no address":  post(with(map[string]any{"recipient": "nobody"}), "invalid_recipient", "6 characters"),
		"a recipient off the curve":       post(with(map[string]any{"recipient": vault.String()}), "invalid_recipient", "curve"),
		"the fee payer as recipient":      post(with(map[string]any{"recipient": s.payer.PublicKey().String()}), "invalid_recipient", "payer"),
		"a recipient left below rent":     post(submissionBody(f.prove(t, small), small.Bytes(), wallet), "recipient_below_rent", "650240"),
		"another recipient than proven":   post(with(map[string]any{"recipient": newKey(t).PublicKey().String()}), "ext_data_mismatch"),
		"a mint that the pool lacks":      post(proven(func(in *shieldpool.PublicInputs) { in.MintAddress = [32]byte{31: 9} }), "unknown_mint"),
		"three notes":                     post(with(map[string]any{"encrypted_notes": []string{note(1), note(1), note(1)}}), "too_many_notes", "3", "2"),
		"notes that do not fit":           post(with(map[string]any{"encrypted_notes": []string{note(125), note(123)}}), "notes_too_large", "258", "257"),
		"a proof of something else":       post(raw(func(b []byte) { b[263] ^= 1 }), "proof_invalid"),
		"a proof of invalid points":       post(with(map[string]any{"proof_bytes": b64(make([]byte, 256))}), "proof_invalid", "points"),
		"a retired withdrawal":            {http.MethodPost, "/withdraw", map[string]any{"outputs": []any{}, "policy": map[string]any{}, "nf": "00"}, nil, 400, "legacy_withdraw_retired", nil},
		"a transfer on the withdraw path": {http.MethodPost, "/withdraw", proven(withAmount(0)), nil, 400, "withdrawal_required", nil},
		"a deposit on the withdraw path":  {http.MethodPost, "/withdraw", proven(withAmount(sol)), nil, 400, "deposit_not_relayed", nil},
		"a swap":                          {http.MethodPost, "/transact_swap", with(map[string]any{"output_mint": to.String(), "recipient_ata": to.String(), "min_output_amount": "1"}), nil, 501, "not_available", nil},
		"an invalid id":                   {http.MethodGet, "/status/seven", nil, nil, 400, "invalid_request", nil},
		"an unknown id":                   {http.MethodGet, "/status/" + uuid.NewString(), nil, nil, 404, "not_found", nil},
		"a path that is no route":         {http.MethodGet, "/nowhere", nil, nil, 404, "route_not_found", nil},
		"another method":                  {http.MethodDelete, "/transact", nil, nil, 405, "method_not_allowed", nil},
		"a body of 20 KiB":                {http.MethodPost, "/transact", `{"proof_bytes":"` + strings.Repeat("A", 20<<10) + `"}`, nil, 413, "body_too_large", nil},
		"another content type":            {http.MethodPost, "/transact", string(text), []string{"Content-Type", "text/plain"}, 415, "unsupported_media_type", nil},
		"commitments of an unknown mint":  {http.MethodGet, "/commitments?mint=" + to.String(), nil, nil, 400, "unknown_mint", nil},
		"commitments from a word":         {http.MethodGet, "/commitments?from_index=one", nil, nil, 400, "invalid_request", nil},
		"the root of an unknown mint":     {http.MethodGet, "/merkle-root?mint=" + to.String(), nil, nil, 400, "unknown_mint", nil},
	}
	stale := *good
	stale.Root = [32]byte{31: 7}
	out["a root that the tree never had"] = post(submissionBody(f.prove(t, &stale), stale.Bytes(), wallet), "root_not_found",
		"RootNotFound (stale Merkle root): proof root 0000000000000000 not in root history (current root "+fmt.Sprintf("%x", good.Root[:8])+")")
	maps.Copy(out, badRegistrations(t))
	return out
}

func badRegistrations(t *testing.T) map[string]badRequest {
	t.Helper()
	public, private, err := ed25519.GenerateKey(randomness)
	must(t, err)
	sign := func(message string) string {
		return base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(message)))
	}
	good := map[string]any{
		"user_pubkey": solana.PublicKeyFromBytes(public).String(), "viewing_key": hex.EncodeToString(make([]byte, 32)), "signature": sign(shieldpool.DefaultSignInMessage),
	}
	post := func(name string, value any, status int, code string) badRequest {
		b := maps.Clone(good)
		b[name] = value
		return badRequest{http.MethodPost, "/viewing-key/register", b, nil, status, code, nil}
	}
	return map[string]badRequest{
		"a viewing key of 63 digits":     post("viewing_key", strings.Repeat("a", 63), 400, "invalid_viewing_key"),
		"a viewing key that is no hex":   post("viewing_key", strings.Repeat("g", 64), 400, "invalid_viewing_key"),
		"an identifier that is no hash":  post("identifier", "me", 400, "invalid_identifier"),
		"a signature of another message": post("signature", sign("Sign in"), 401, "invalid_signature"),
		"a signature of another wallet":  post("user_pubkey", newKey(t).PublicKey().String(), 401, "invalid_signature"),
		"an invalid signature":           post("signature", "AAAA", 401, "invalid_signature"),
		"an invalid wallet":              post("user_pubkey", "me", 400, "invalid_request"),
	}
}

// TestAForgedProofCostsNoCall counts the RPC calls while the relay receives forged proofs.
func TestAForgedProofCostsNoCall(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk})
	s.waitHealthy()
	to := newKey(t).PublicKey()
	in := f.inputs(s, -sol, to)
	other, err := trapdoor.New("somebody else's key", shieldpool.SignalCount).Prove(signals(in), 1)
	must(t, err)
	before := s.chain.Stats()
	for range 20 {
		wantRefused(t, s.call(http.MethodPost, "/transact", submissionBody(other, in.Bytes(), map[string]any{"recipient": to.String()})), 400, "proof_invalid")
	}
	for method, n := range s.chain.Stats() {
		if n != before[method] && !slices.Contains(backgroundMethods, method) {
			t.Errorf("%s was called %d times, want 0", method, n-before[method])
		}
	}
}

func signals(in *shieldpool.PublicInputs) [][32]byte {
	all := in.Signals()
	return all[:]
}

func TestSpentAndReservedNullifiersAreRefused(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk})
	s.waitHealthy()
	in := f.inputs(s, 5*sol, solana.PublicKey{})
	s.deposit(&shieldpool.Call{Proof: f.prove(t, in), Inputs: in})
	to := newKey(t).PublicKey()
	withdraw := func(in *shieldpool.PublicInputs, header ...string) *answer {
		return s.call(http.MethodPost, "/transact", submissionBody(f.prove(t, in), in.Bytes(), map[string]any{"recipient": to.String()}), header...)
	}

	spent := f.inputs(s, -sol, to)
	s.sendWithoutRelay(s.payer, &shieldpool.Call{Proof: f.prove(t, spent), Inputs: spent, Destination: shieldpool.Destination{Recipient: to}})
	partlySpent := f.inputs(s, -sol, to)
	partlySpent.Nullifiers[1] = spent.Nullifiers[0]
	a := withdraw(partlySpent)
	wantRefused(t, a, 409, "nullifier_spent", "nullifier 1")
	if a.body["nullifier_index"] != 1.0 {
		t.Errorf("the index is %v, want 1", a.body["nullifier_index"])
	}

	first := f.inputs(s, -sol, to)
	if a := withdraw(first, "Idempotency-Key", "k"); a.status != 200 {
		t.Fatalf("a valid withdrawal is answered %d %v, want 200", a.status, a.body)
	}
	other := f.inputs(s, -sol, to)
	if a := withdraw(other, "Idempotency-Key", "k"); a.status != 200 {
		t.Errorf("a withdrawal with the Idempotency-Key of another is answered %d %v, want 200", a.status, a.body)
	}
	other.Nullifiers[0] = first.Nullifiers[1]
	a = withdraw(other)
	wantRefused(t, a, 409, "nullifier_reserved")
	if a.body["nullifier_index"] != 0.0 {
		t.Errorf("the index is %v, want 0", a.body["nullifier_index"])
	}

	tooLarge := f.inputs(s, -100*sol, to)
	a = withdraw(tooLarge)
	wantRefused(t, a, 422, "program_error", "0x1031")
	if a.body["program_code"] != "0x1031" || a.body["request_id"] == nil {
		t.Errorf("the answer is %v, want the program's code and a request id", a.body)
	}
	path := "/status/" + a.body["request_id"].(string)
	if a := s.call(http.MethodGet, path, nil); a.at("data", "status") != "failed" || a.at("data", "error_code") != "program_error" {
		t.Errorf("the withdrawal's status is %v, want failed with the code", a.body)
	}
}

func TestAnUninitialisedPoolIsReported(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk, uninitialised: true})
	eventually(t, "the chain is reached", func() bool { return strings.Contains(s.log.String(), "chain reached") })
	wantRefused(t, s.call(http.MethodGet, "/merkle-root", nil), 503, "pool_not_initialised", "nitialise")
	to := newKey(t).PublicKey()
	in := f.inputs(s, -sol, to)
	in.Root = [32]byte{31: 1}
	wantRefused(t, s.call(http.MethodPost, "/transact", submissionBody(f.prove(t, in), in.Bytes(), map[string]any{"recipient": to.String()})), 503, "pool_not_initialised")
	if a := s.health(); a.status != 200 || a.body["status"] != "degraded" || a.at("checks", "pool", "status") != "degraded" {
		t.Errorf("health is %d %v, want degraded by the pool", a.status, a.body)
	}
}

func TestSubmissionsAreRefusedWithoutChainOrFunds(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	down := newFixture(t, fixtureOptions{vk: vk, rpcUnreachable: true})
	to := newKey(t).PublicKey()
	in := f.inputs(down, -sol, to)
	request := func() map[string]any {
		return submissionBody(f.prove(t, in), in.Bytes(), map[string]any{"recipient": to.String()})
	}
	wantRefused(t, down.call(http.MethodPost, "/transact", request(), "Prefer", "respond-async"), 503, "chain_unavailable")
	wantRefused(t, down.call(http.MethodGet, "/merkle-root", nil), 503, "chain_unavailable")
	if a := down.health(); a.status != 200 || a.body["status"] != "degraded" {
		t.Errorf("health is %d %v, want degraded", a.status, a.body)
	}
	for range 2 { // registration does not depend on the chain
		for name, r := range badRegistrations(t) {
			if a := down.call(r.method, r.path, r.body); a.status != r.status {
				t.Errorf("%s is answered %d, want %d", name, a.status, r.status)
			}
		}
	}

	dry := newFixture(t, fixtureOptions{vk: vk, unfunded: true})
	eventually(t, "the chain is reached", func() bool { return strings.Contains(dry.log.String(), "chain reached") })
	in = f.inputs(dry, -sol, to)
	wantRefused(t, dry.call(http.MethodPost, "/transact", request()), 503, "fee_payer_empty", "fee payer")
}

func TestTheRateLimitIsEnforced(t *testing.T) {
	t.Parallel()
	_, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk, changeConfig: func(c *config.Serve) { c.RateLimit = 3 }})
	for range 3 {
		s.call(http.MethodGet, "/compliance-key", nil)
	}
	a := s.call(http.MethodGet, "/compliance-key", nil)
	wantRefused(t, a, 429, "rate_limited")
	if a.header.Get("Retry-After") == "" {
		t.Error("a 429 has no Retry-After")
	}
}
