package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/trapdoor"
	"github.com/relaypool/relaypool/relay/commandline"
	"github.com/relaypool/relaypool/relay/poolcheck"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// probeTest has a local chain with a key for which proofs can be made without a prover.
type probeTest struct {
	*testing.T
	*localnet.Chain
	secrets *trapdoor.Key
	url     string
	key     string // the verifying key's file
	keyFile string // the payer's key file
	payer   solana.PrivateKey
	pool    *shieldpool.Pool
	client  *rpc.Client
	calls   uint64
}

func newProbed(t *testing.T, o localnet.Options) *probeTest {
	t.Helper()
	p := &probeTest{T: t, secrets: trapdoor.New("probe", shieldpool.SignalCount)}
	var err error
	o.VerifyingKey, err = p.secrets.VerifyingKey()
	noError(t, err)
	p.Chain, err = localnet.New(o)
	noError(t, err)
	t.Cleanup(func() { noError(t, p.Chain.Close()) })
	p.url, err = p.Listen("127.0.0.1:0")
	noError(t, err)
	p.client = rpc.New(p.url)
	p.key = file(t, string(o.VerifyingKey))
	p.keyFile = filepath.Join(t.TempDir(), "payer.json")
	succeed(t, "", "keygen", p.keyFile)
	p.payer, err = solana.PrivateKeyFromSolanaKeygenFile(p.keyFile)
	noError(t, err)
	noError(t, p.Fund(p.payer.PublicKey(), 10*solana.LAMPORTS_PER_SOL))
	p.Finalize()
	profile := shieldpool.Development()
	p.pool, err = profile.Pool(profile.Mints[0])
	noError(t, err)
	return p
}

// land puts a call on the chain.
func (p *probeTest) land(amount int64, d shieldpool.Destination) {
	p.Helper()
	p.calls++
	label := func(text string) (out [32]byte) {
		out = sha256.Sum256(binary.LittleEndian.AppendUint64([]byte(text), p.calls))
		out[0] = 0
		return out
	}
	call := &shieldpool.Call{Destination: d, Inputs: &shieldpool.PublicInputs{
		Root: p.pool.Profile.NewTree(solana.PublicKey{}).Root, PublicAmount: amount, MintAddress: p.pool.Mint.Field,
		Nullifiers:  [2][32]byte{label("nullifier 0"), label("nullifier 1")},
		Commitments: [2][32]byte{label("commitment 0"), label("commitment 1")},
	}}
	if amount < 0 {
		call.Inputs.ExtDataHash = shieldpool.ExtDataHash(d)
	}
	signals := call.Inputs.Signals()
	var err error
	call.Proof, err = p.secrets.Prove(signals[:], p.calls)
	noError(p.T, err)
	ix, err := p.pool.Instruction(p.payer.PublicKey(), call)
	noError(p.T, err)
	recent, err := p.client.GetLatestBlockhash(p.Context(), rpc.CommitmentProcessed)
	noError(p.T, err)
	tx, err := solana.NewTransaction([]solana.Instruction{ix}, recent.Value.Blockhash, solana.TransactionPayer(p.payer.PublicKey()))
	noError(p.T, err)
	_, err = tx.Sign(func(solana.PublicKey) *solana.PrivateKey { return &p.payer })
	noError(p.T, err)
	_, err = p.client.SendTransactionWithOpts(p.Context(), tx, rpc.TransactionOpts{PreflightCommitment: rpc.CommitmentProcessed})
	noError(p.T, err)
	p.Advance(1)
}

// landEachKind lands a deposit, a transfer, a withdrawal and a swap.
func (p *probeTest) landEachKind() {
	p.Helper()
	p.land(5_000_000_000, shieldpool.Destination{})
	p.land(0, shieldpool.Destination{})
	p.land(-100_000_000, shieldpool.Destination{Recipient: solana.MustPublicKeyFromBase58("FoJwdEv9uCmWVnqRDq9mozUoEzuaQfdw1aysziJt6RYW")})
	ata, err := shieldpool.AssociatedTokenAccount(p.payer.PublicKey(), localnet.OutputMint())
	noError(p.T, err)
	p.land(-1_000_000_000, shieldpool.Destination{Swap: &shieldpool.SwapTerms{OutputMint: localnet.OutputMint(), RecipientATA: ata, MinOutput: 1}})
	p.Finalize()
}

// probe runs the command with JSON.
func (p *probeTest) probe(more ...string) (code int, r probeReport) {
	p.Helper()
	code, out, stderr := p.table(append([]string{"--output=json"}, more...)...)
	if code > 1 {
		p.Fatalf("relay probe: exit code %d: %s", code, stderr)
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		p.Fatalf("%v: %s", err, out)
	}
	if r.OK != (code == 0) || (code == 1) != strings.Contains(stderr, "a check failed") {
		p.Errorf("exit code %d, ok %v and %q", code, r.OK, stderr)
	}
	return code, r
}

func (p *probeTest) table(more ...string) (code int, out, stderr string) {
	p.Helper()
	args := []string{"probe", "--profile=development", "--verifying-key=" + p.key, "--genesis-hash=" + localnet.GenesisHash.String(), "--fee-payer-key-file=" + p.keyFile, "--timeout=3s"}
	if !strings.Contains(strings.Join(more, " "), "--rpc-") {
		args = append(args, "--rpc-url="+p.url)
	}
	return command(p.T, "", append(args, more...)...)
}

// check returns the check with that name.
func (r *probeReport) check(name string) poolcheck.Check {
	for _, c := range r.Checks {
		if c.Name == name {
			return c
		}
	}
	return poolcheck.Check{}
}

func TestProbeOfHealthyPool(t *testing.T) {
	t.Parallel()
	p := newProbed(t, localnet.Options{Initialised: true})
	code, r := p.probe()
	if code != 0 {
		t.Errorf("a fresh pool: exit code %d, want 0: %+v", code, r)
	}
	for _, name := range []string{"transact", "transact_swap", "landed_proof"} {
		if c := r.check(name); c.State != poolcheck.Unknown {
			t.Errorf("got %s, want %s unknown before the first transaction", c, name)
		}
	}
	p.landEachKind()
	code, r = p.probe()
	if c := r.check("landed_proof"); c.State != poolcheck.OK || !strings.HasSuffix(c.Found, "holds, with A plain") {
		t.Errorf("got %s, want the newest proof to hold with A plain", c)
	}
	if code != 0 || r.check("transact").State != poolcheck.OK || r.check("transact_swap").State != poolcheck.OK {
		t.Errorf("exit code %d, %s, %s, want both kinds compared", code, r.check("transact"), r.check("transact_swap"))
	}
	e := r.Endpoints[0]
	if e.State != poolcheck.OK || e.Genesis != localnet.GenesisHash.String() || e.Version == "" || e.Slot == nil || *e.Slot == 0 || e.Lag == nil || *e.Lag != 0 || e.History == nil || *e.History == 0 {
		t.Errorf("got endpoint %+v, want its chain, version, slot, lag and history", e)
	}
	payer := r.Payers[0]
	if payer.State != poolcheck.OK || payer.Address != p.payer.PublicKey().String() || payer.Lamports == nil || payer.Transactions == nil ||
		*payer.Transactions != (*payer.Lamports-50_000_000)/shieldpool.TransactCost || payer.Runway == nil || *payer.Runway <= 0 {
		t.Errorf("got payer %+v, want its balance, the transactions it can pay and a runway", payer)
	}

	code, out, _ := p.table()
	if code != 0 {
		t.Errorf("the table: exit code %d, want 0", code)
	}
	for _, want := range []string{"endpoint ", "what to do", "tree_self_check", "the root agrees with history and frontier", p.payer.PublicKey().String(), " h "} {
		if !strings.Contains(out, want) {
			t.Errorf("the table does not hold %q:\n%s", want, out)
		}
	}
}

func TestProbeFindsFaults(t *testing.T) {
	t.Parallel()
	p := newProbed(t, localnet.Options{Initialised: true})
	p.landEachKind()
	bare := newProbed(t, localnet.Options{})
	written, err := shieldpool.MarshalProfile(shieldpool.Development())
	noError(t, err)
	swap := func(from, to string) string {
		t.Helper()
		if n := bytes.Count(written, []byte(from)); n == 0 {
			t.Fatalf("the profile does not hold %q:\n%s", from, written)
		}
		return file(t, strings.ReplaceAll(string(written), from, to))
	}
	otherKey, err := trapdoor.New("another", shieldpool.SignalCount).VerifyingKey()
	noError(t, err)
	tests := map[string]struct {
		chain  *probeTest
		args   []string
		check  string
		reason poolcheck.Reason
		want   string
	}{
		"a pool that is not initialised": {bare, nil, "merkle_tree", poolcheck.ReasonAccountMissing, "initialise the pool"},
		"another program":                {p, []string{"--program-id=" + solana.MustPublicKeyFromBase58("FoJwdEv9uCmWVnqRDq9mozUoEzuaQfdw1aysziJt6RYX").String()}, "program", poolcheck.ReasonProgramMissing, "check the program id"},
		"another root history":           {p, []string{"--root-history-size=64"}, "tree_self_check", poolcheck.ReasonTreeMismatch, "which is 64"},
		"another cluster":                {p, []string{"--genesis-hash=" + solana.Hash{1}.String()}, "genesis", poolcheck.ReasonWrongCluster, "correct the RPC endpoint's URL"},
		"a wallet as mint":               {p, []string{"--mint=" + p.payer.PublicKey().String() + "=" + strings.Repeat("0", 63) + "1"}, "mint", poolcheck.ReasonMintUnknown, "correct the list of mints"},
		"another account order": {p, []string{"--profile-file=" + swap("- {role: treasury, writable: true}\n    - {role: merkle_tree, writable: true}\n    - {role: nullifier0", "- {role: merkle_tree, writable: true}\n    - {role: treasury, writable: true}\n    - {role: nullifier0")},
			"transact", poolcheck.ReasonProfileMismatch, "treasury at place 2, where the profile has merkle_tree, merkle_tree at place 3, where the profile has treasury"},
		"another account order of swaps": {p, []string{"--profile-file=" + swap("- {role: swap_state, writable: true}\n    - {role: system_program}\n  initialize", "- {role: system_program}\n    - {role: swap_state, writable: true}\n  initialize")},
			"transact_swap", poolcheck.ReasonProfileMismatch, "swap_state at place 6, where the profile has system_program"},
		"a missing account": {p, []string{"--profile-file=" + swap("- {role: recipient, writable: true}\n    - {role: system_program}\n  transactSwap", "- {role: recipient, writable: true}\n  transactSwap")},
			"transact", poolcheck.ReasonProfileMismatch, "8 accounts"},
		"other tags": {p, []string{"--profile-file=" + swap("transact: 0\n  transactSwap: 1", "transact: 7\n  transactSwap: 8")},
			"transact", poolcheck.ReasonProfileMismatch, "with tag 0"},
		"exchanged tags": {p, []string{"--profile-file=" + swap("transact: 0\n  transactSwap: 1", "transact: 1\n  transactSwap: 0")},
			"transact_swap", poolcheck.ReasonProfileMismatch, "with tag 1"},
		"another verifying key": {p, []string{"--verifying-key=" + file(t, string(otherKey))}, "landed_proof", poolcheck.ReasonProofMismatch, "give the pool's own --verifying-key"},
		"another mint field": {p, []string{"--mint=" + p.pool.Mint.Address.String() + "=" + strings.Repeat("0", 63) + "1"},
			"landed_proof", poolcheck.ReasonMintUnknown, "correct the field of the pool's mint"},
		"other seeds of nullifiers": {p, []string{"--profile-file=" + swap("- {literal: nullifier}", "- {literal: nullify}")},
			"transact", poolcheck.ReasonProfileMismatch, "another account at place 4, where the profile has nullifier0"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chain := *test.chain
			chain.T = t
			code, r := chain.probe(test.args...)
			c := r.check(test.check)
			if code != 1 || c.State != poolcheck.Failed || c.Reason != test.reason || !strings.Contains(c.String(), test.want) {
				t.Errorf("exit code %d and %q, %s, want a failure of %s with %q", code, c.String(), c.Reason, test.reason, test.want)
			}
		})
	}
}

func TestProbeOfEndpoints(t *testing.T) {
	t.Parallel()
	p := newProbed(t, localnet.Options{Initialised: true})
	p.Advance(400) // so that an endpoint can be far behind
	dead := httptest.NewServer(nil)
	dead.Close()
	list := func(names ...string) string {
		var b strings.Builder
		for _, name := range names {
			url := dead.URL
			if name != "dead" {
				var err error
				url, err = p.ListenEndpoint(name, "127.0.0.1:0")
				noError(t, err)
			}
			fmt.Fprintf(&b, "- name: %s\n  url: %s/%s\n", name, url, canary)
			if name == "sends" {
				b.WriteString("  roles: [submit]\n")
			}
		}
		return "--rpc-endpoints-file=" + file(t, b.String())
	}
	faults := func(name string, rule fault.Rule) {
		t.Helper()
		noError(t, p.Endpoint(name).SetFaults([]fault.Rule{rule}))
	}
	faults("failing", fault.Rule{Status: 503})
	faults("behind", fault.Rule{Lag: 140})
	faults("empty", fault.Rule{Method: "getMultipleAccounts", Empty: true})
	faults("short", fault.Rule{History: 10})
	faults("sends", fault.Rule{Error: fault.Error{Code: -32601, Message: "no such method"}})

	code, r := p.probe(list("dead", "good"))
	if code != 1 || r.Endpoints[0].State != poolcheck.Failed || r.Endpoints[1].State != poolcheck.OK || r.check("pool").State != poolcheck.OK {
		t.Errorf("exit code %d and %+v, want one failed endpoint and a healthy pool", code, r.Endpoints)
	}
	if code, r = p.probe(list("failing")); code != 1 || r.Endpoints[0].State != poolcheck.Failed || r.check("pool").State != poolcheck.Unknown || r.Payers[0].State != poolcheck.Unknown || r.Payers[0].Lamports != nil {
		t.Errorf("exit code %d, %s and %+v, want an unknown pool and an unknown payer", code, r.check("pool"), r.Payers)
	}
	if code, r = p.probe(list("empty")); code != 1 || r.check("merkle_tree").State != poolcheck.Unknown {
		t.Errorf("exit code %d and %s, want an unknown tree, because the endpoint has no state", code, r.check("merkle_tree"))
	}
	if code, r = p.probe(list("good", "behind")); code != 0 || r.Endpoints[1].Lag == nil || *r.Endpoints[1].Lag < 130 {
		t.Errorf("exit code %d and %+v, want the second endpoint's lag", code, r.Endpoints)
	}
	if code, r = p.probe(list("good", "short")); code != 0 || *r.Endpoints[1].History > 12 || *r.Endpoints[0].History < 400 {
		t.Errorf("exit code %d and %+v, want the depth of both histories", code, r.Endpoints)
	}
	if code, r = p.probe(list("good", "sends")); code != 0 || r.Endpoints[1].State != poolcheck.Unknown {
		t.Errorf("exit code %d and %+v, want no failure for an endpoint that only sends", code, r.Endpoints)
	}
	for _, output := range []string{"json", "table"} {
		if _, out, stderr := p.table(list("dead", "failing", "empty"), "--output="+output); strings.Contains(out+stderr, canary) {
			t.Errorf("the %s shows a URL: %s%s", output, out, stderr)
		}
	}
}

func TestProbeOfPayerBelowMinimum(t *testing.T) {
	t.Parallel()
	p := newProbed(t, localnet.Options{Initialised: true})
	code, r := p.probe("--fee-payer-min-balance=20000000000")
	if code != 1 || r.Payers[0].State != poolcheck.Failed || r.Payers[0].Remedy != "send at least 10000000000 lamports to "+p.payer.PublicKey().String() {
		t.Errorf("exit code %d and %+v, want what to send where", code, r.Payers)
	}
}

func TestProbeWithFewFlags(t *testing.T) {
	t.Parallel()
	p := newProbed(t, localnet.Options{Initialised: true})
	code, out, stderr := command(t, "", "probe", "--rpc-url="+p.url, "--profile=development", "--history=0")
	if code != 0 || strings.Contains(out, "verifying_key") || strings.Contains(out, "fee payer") {
		t.Errorf("exit code %d, %q and\n%s\nwant neither key nor payers", code, stderr, out)
	}
	// The development key is refused on any chain but the local one, which this is.
	key, err := os.ReadFile("../../../hack/circuit/verification_key.json")
	noError(t, err)
	if code, _, stderr := command(t, "", "probe", "--rpc-url="+p.url, "--profile=development", "--verifying-key="+file(t, string(key))); code != 0 {
		t.Errorf("the development key on the local chain: exit code %d, want 0: %s", code, stderr)
	}
	for name, args := range map[string][]string{
		"no endpoint":                {},
		"an unknown output":          {"--rpc-url=" + p.url, "--output=" + canary},
		"a zero timeout":             {"--rpc-url=" + p.url, "--timeout=0s"},
		"a history that is too long": {"--rpc-url=" + p.url, "--history=2000"},
		"a key file without a key":   {"--rpc-url=" + p.url, "--fee-payer-key-file=" + file(t, canary)},
		"an invalid profile":         {"--rpc-url=" + p.url, "--profile-file=" + file(t, canary)},
	} {
		if code, _, stderr := command(t, "", append([]string{"probe"}, args...)...); code != commandline.ExitUsage || strings.Contains(stderr, canary) {
			t.Errorf("%s: exit code %d and %q, want a usage error that does not repeat the value", name, code, stderr)
		}
	}
}
