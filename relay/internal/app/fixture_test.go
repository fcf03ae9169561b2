package app

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/trapdoor"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/feepayer"
	"github.com/relaypool/relaypool/relay/internal/httpapi/httpapitest"
	"github.com/relaypool/relaypool/relay/internal/pgtest"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/internal/viewingkey"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/rpc"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const (
	defaultSlotDuration = 20 * time.Millisecond
	sol                 = 1_000_000_000
	waitTimeout         = 2 * time.Minute
)

// credential is a part of every RPC and router URL: no log and no metric may show it.
const credential = "c4n4rycredential"

// relay is a relay that runs inside the test's process.
type relay struct {
	app                   *App
	apiURL, operationsURL string
	log                   *lockedBuffer
	stop                  func()
	ended                 chan error
}

// fixture is a relay on a real database and a local chain, reached over HTTP.
type fixture struct {
	t       *testing.T
	options fixtureOptions
	chain   *localnet.Chain
	rpc     *rpc.Client
	pool    *shieldpool.Pool
	payer   *feepayer.Key // the first of payers
	payers  []*feepayer.Key
	db      *pgxpool.Pool
	*relay
}

// fixtureOptions vary a fixture. The zero value makes a relay that is ready.
type fixtureOptions struct {
	vk             []byte
	uninitialised  bool // the pool is not initialised
	unfunded       bool // no fee payer has lamports
	payerCount     int  // 0 means one
	endpoints      []string
	changeConfig   func(*config.Serve)
	databaseURL    string
	rpcUnreachable bool // the RPC endpoint is a closed port
	lease          time.Duration
	rootHistory    int // size of the program's root history; 0 means the profile's
	slotDuration   time.Duration
	finalizeAfter  uint64                            // in blocks; 0 means as mainnet
	seedLeaves     uint64                            // that the pool begins with
	swapTimeout    uint64                            // in slots; 0 means the profile's
	accounts       map[solana.PublicKey]bank.Account // on the chain from the start
}

func newFixture(t *testing.T, o fixtureOptions) *fixture {
	t.Helper()
	s := &fixture{t: t, options: o}
	var err error
	profile := shieldpool.Development()
	profile.RootHistory = cmp.Or(o.rootHistory, profile.RootHistory)
	profile.SwapTimeout = cmp.Or(o.swapTimeout, profile.SwapTimeout)
	s.chain, err = localnet.New(localnet.Options{VerifyingKey: o.vk, SlotDuration: cmp.Or(o.slotDuration, defaultSlotDuration), FinalizeAfter: o.finalizeAfter, Initialised: !o.uninitialised, Profile: profile, Accounts: o.accounts, SeedLeaves: o.seedLeaves})
	must(t, err)
	t.Cleanup(func() { must(t, s.chain.Close()) })
	url, err := s.chain.Listen("127.0.0.1:0")
	must(t, err)
	s.chain.Start(t.Context())
	s.rpc, err = rpc.New(rpc.Options{URL: url, HTTP: rpc.NewHTTPClient(), Now: time.Now})
	must(t, err)
	s.pool, err = profile.Pool(profile.Mints[0])
	must(t, err)
	for range max(o.payerCount, 1) {
		key := newKey(t)
		s.payers = append(s.payers, key)
		if !o.unfunded {
			must(t, s.chain.Fund(key.PublicKey(), 10*sol))
		}
	}
	s.payer = s.payers[0]
	if s.options.databaseURL == "" {
		s.options.databaseURL = pgtest.URL(t)
	}
	s.db, err = pgxpool.New(t.Context(), s.options.databaseURL)
	must(t, err)
	t.Cleanup(s.db.Close)
	s.startRelay()
	return s
}

// startRelay starts a relay, to which the fixture sends all later requests. The changes of
// its configuration are made after those of the fixture's options.
func (s *fixture) startRelay(change ...func(*config.Serve)) {
	s.t.Helper()
	s.relay = s.runRelay(s.configure(change...))
}

// withRelay returns a copy of the fixture that sends requests to another relay.
func (s *fixture) withRelay(r *relay) *fixture {
	c := *s
	c.relay = r
	return &c
}

func (s *fixture) configure(change ...func(*config.Serve)) *config.Config {
	s.t.Helper()
	t, dir := s.t, tempDir(s.t)
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, content, 0o600))
		return path
	}
	var keys []string
	for i, key := range s.payers {
		path := filepath.Join(dir, fmt.Sprintf("payer-%d.json", i))
		must(t, key.WriteFile(path))
		keys = append(keys, path)
	}
	public, _, err := viewingkey.GenerateComplianceKey(randomness)
	must(t, err)
	c := config.Serve{
		Listen: "127.0.0.1:0", OperationsListen: "127.0.0.1:0", Profile: "development", ProofA: "auto", TransactionFormat: config.FormatLegacy,
		Database:     config.Database{URLFile: write("database-url", []byte(s.options.databaseURL)), MaxConnections: 10},
		VerifyingKey: write("vk.json", s.options.vk), FeePayerKeyFile: keys, FeePayerMinBalance: sol / 100, Retention: 24 * time.Hour,
		PriorityFeeCap: 1000, PriorityFeePercentile: 50, CompliancePublicKey: hex.EncodeToString(public[:]),
		Logging: config.Logging{Level: "debug", Format: "json"}, Concurrency: 16, Wait: 20 * time.Second, WaitMax: time.Minute,
	}
	if s.options.swapTimeout > 0 {
		c.Profile, c.ProfileFile = "", write("profile.yaml", fmt.Appendf(nil, "base: development\nswapTimeout: %d\n", s.options.swapTimeout))
	}
	switch {
	case s.options.rpcUnreachable:
		c.RPC.URL = config.NewSecret("http://127.0.0.1:1/" + credential)
	case len(s.options.endpoints) == 0:
		c.RPC.URL = config.NewSecret(s.listenEndpoint(localnet.DefaultEndpoint))
	default:
		c.EndpointsFile = write("endpoints.yaml", []byte(s.endpointsFile(s.options.endpoints...)))
	}
	for _, f := range append([]func(*config.Serve){s.options.changeConfig}, change...) {
		if f != nil {
			f(&c)
		}
	}
	cfg, err := c.Load()
	must(t, err)
	return cfg
}

// tempDir makes a folder with a short path: the length of a Unix socket's path is limited.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "relay")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // the operating system deletes the rest
	return dir
}

// listenEndpoint returns a URL, with a credential, of the chain's endpoint of that name.
func (s *fixture) listenEndpoint(name string) string {
	s.t.Helper()
	url, err := s.chain.ListenEndpoint(name, "127.0.0.1:0")
	must(s.t, err)
	return strings.TrimSuffix(url, "/") + "/" + credential
}

// endpointsFile returns the content of an endpoints file with those names.
func (s *fixture) endpointsFile(names ...string) string {
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "- {name: %s, url: %s}\n", name, s.listenEndpoint(name))
	}
	return b.String()
}

func (s *fixture) runRelay(cfg *config.Config) *relay {
	s.t.Helper()
	t, r := s.t, &relay{log: new(lockedBuffer), ended: make(chan error, 1)}
	a, err := New(t.Context(), Options{
		Config: cfg, Log: slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})), Version: "0.0.1", Build: "test",
		Timing:         txmgr.Timing{Lease: cmp.Or(s.options.lease, 2*time.Second), Poll: defaultSlotDuration, Sweep: defaultSlotDuration, Backoff: defaultSlotDuration, BackoffCap: 10 * defaultSlotDuration, Hold: 5 * defaultSlotDuration},
		LedgerInterval: time.Second,
	})
	must(t, err)
	r.app, r.apiURL, r.operationsURL = a, "http://"+a.Address(), "http://"+a.OperationsAddress()
	ctx, cancel := context.WithCancel(context.Background())
	go func() { r.ended <- a.Run(ctx) }()
	var stopped atomic.Bool
	r.stop = func() {
		cancel()
		if stopped.Swap(true) {
			return
		}
		select {
		case err := <-r.ended:
			r.ended <- err
		case <-time.After(waitTimeout):
			t.Errorf("the relay did not stop within %s", waitTimeout)
		}
		if t.Failed() {
			t.Log(r.log.String())
		}
	}
	t.Cleanup(r.stop)
	return r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newKey(t *testing.T) *feepayer.Key {
	t.Helper()
	key, err := feepayer.Generate(randomness)
	must(t, err)
	return key
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(waitTimeout); !condition(); time.Sleep(defaultSlotDuration) {
		if time.Now().After(deadline) {
			t.Fatalf("after %s not yet true: %s", waitTimeout, what)
		}
	}
}

// answer is a relay's answer, validated against the OpenAPI document.
type answer struct {
	status int
	header http.Header
	body   map[string]any
}

// at returns a member of the body: at("data", "status").
func (a *answer) at(path ...string) any {
	var v any = a.body
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[p]
	}
	return v
}

// health calls GET /health on the operations port, which returns all details.
func (s *fixture) health() *answer {
	s.t.Helper()
	c, r := *s, *s.relay
	r.apiURL = r.operationsURL
	c.relay = &r
	return c.call(http.MethodGet, "/health", nil)
}

// call sends a request. body is JSON text or a value to encode; header is pairs of names and values.
func (s *fixture) call(method, path string, body any, header ...string) *answer {
	s.t.Helper()
	var raw []byte
	switch b := body.(type) {
	case nil:
	case string:
		raw = []byte(b)
	default:
		var err error
		raw, err = json.Marshal(b)
		must(s.t, err)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.apiURL+path, bytes.NewReader(raw))
	must(s.t, err)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	must(s.t, err)
	defer func() { _ = resp.Body.Close() }()
	// The validator reads the request's body again.
	req.Body = http.NoBody
	if raw != nil {
		req.Body = readCloser{bytes.NewReader(raw)}
	}
	a := &answer{status: resp.StatusCode, header: resp.Header}
	must(s.t, json.Unmarshal(httpapitest.Validate(s.t, req, resp), &a.body))
	return a
}

type readCloser struct{ *bytes.Reader }

func (readCloser) Close() error { return nil }

// submissionBody returns the body of a submission.
func submissionBody(proof, inputs []byte, more map[string]any) map[string]any {
	b := map[string]any{
		"proof_bytes": base64.StdEncoding.EncodeToString(proof), "public_inputs": base64.StdEncoding.EncodeToString(inputs),
	}
	maps.Copy(b, more)
	return b
}

func (s *fixture) balance(key solana.PublicKey) uint64 {
	s.t.Helper()
	lamports, _, err := s.rpc.Balance(s.t.Context(), key, 0)
	must(s.t, err)
	return lamports
}

// fundPool gives the pool lamports and waits until they are confirmed: simulations would not see them before.
func (s *fixture) fundPool(lamports uint64) {
	s.t.Helper()
	want := s.balance(s.pool.Address) + lamports
	must(s.t, s.chain.Fund(s.pool.Address, lamports))
	eventually(s.t, "the pool's lamports are confirmed", func() bool { return s.balance(s.pool.Address) >= want })
}

// deposit sends a call signed by a depositor's own wallet and waits until it has landed.
func (s *fixture) deposit(c *shieldpool.Call) {
	s.t.Helper()
	wallet := newKey(s.t)
	must(s.t, s.chain.Fund(wallet.PublicKey(), c.Inputs.Gross()+sol))
	s.sendWithoutRelay(wallet, c)
}

// sendWithoutRelay sends a call without the relay, paid and signed by wallet.
func (s *fixture) sendWithoutRelay(wallet *feepayer.Key, c *shieldpool.Call) {
	s.t.Helper()
	ctx := s.t.Context()
	hash, err := s.rpc.LatestBlockhash(ctx)
	must(s.t, err)
	tx, err := s.pool.Transaction(wallet.PublicKey(), c, shieldpool.Compute{Limit: 400_000}, hash.Hash, nil)
	must(s.t, err)
	message, err := tx.Message.MarshalBinary()
	must(s.t, err)
	sig, err := wallet.Sign(context.Background(), message)
	must(s.t, err)
	tx.Signatures = []solana.Signature{sig}
	raw, err := tx.MarshalBinary()
	must(s.t, err)
	must(s.t, s.rpc.Send(ctx, raw, false, 0))
	eventually(s.t, "the transaction is confirmed", func() bool {
		st, _, err := s.rpc.Statuses(ctx, []solana.Signature{sig}, true)
		must(s.t, err)
		if st[0] != nil && st[0].Err != nil {
			s.t.Fatalf("the transaction failed: %v", st[0].Err)
		}
		return st[0] != nil && st[0].Confirmation.AtLeast(onchain.Confirmed)
	})
}

// forger proves any statement, with a key whose secrets are known: for refusals that
// no honest prover can cause.
type forger struct {
	secrets *trapdoor.Key
	proofs  byte
}

func newForger(t *testing.T) (*forger, []byte) {
	t.Helper()
	f := &forger{secrets: trapdoor.New(t.Name(), shieldpool.SignalCount)}
	vk, err := f.secrets.VerifyingKey()
	must(t, err)
	return f, vk
}

// inputs returns the public inputs of a withdrawal with new notes and the pool's newest root.
func (f *forger) inputs(s *fixture, amount int64, recipient solana.PublicKey) *shieldpool.PublicInputs {
	s.t.Helper()
	accounts, _, err := s.rpc.Accounts(s.t.Context(), []solana.PublicKey{s.pool.MerkleTree}, onchain.Confirmed, 0)
	must(s.t, err)
	in := &shieldpool.PublicInputs{PublicAmount: amount, MintAddress: s.pool.Mint.Field}
	if accounts[0] != nil {
		tree, err := s.pool.Profile.ParseTree(accounts[0].Data)
		must(s.t, err)
		in.Root = tree.Root
	}
	f.proofs++
	in.ExtDataHash = shieldpool.ExtDataHash(shieldpool.Destination{Recipient: recipient})
	in.Nullifiers = [2][32]byte{{30: f.proofs, 31: 1}, {30: f.proofs, 31: 2}}
	in.Commitments = [2][32]byte{{30: f.proofs, 31: 3}, {30: f.proofs, 31: 4}}
	return in
}

func (f *forger) prove(t *testing.T, in *shieldpool.PublicInputs) []byte {
	t.Helper()
	signals := in.Signals()
	proof, err := f.secrets.Prove(signals[:], uint64(f.proofs))
	must(t, err)
	return proof
}

// countRows counts the rows that submissions leave in the database.
func (s *fixture) countRows() (n int) {
	s.t.Helper()
	must(s.t, s.db.QueryRow(s.t.Context(), `SELECT (SELECT count(*) FROM submissions) + (SELECT count(*) FROM reservations)
		+ (SELECT count(*) FROM attempts) + (SELECT count(*) FROM idempotency_keys) + (SELECT count(*) FROM viewing_keys)`).Scan(&n))
	return n
}

func wantRefused(t *testing.T, a *answer, status int, code string, words ...string) {
	t.Helper()
	message, _ := a.body["message"].(string)
	if a.status != status || a.body["code"] != code || a.body["error"] != true {
		t.Fatalf("the answer is %d %v, want %d %s", a.status, a.body, status, code)
	}
	for _, w := range words {
		if !strings.Contains(message, w) {
			t.Errorf("message %q, want %q in it", message, w)
		}
	}
	if status == http.StatusServiceUnavailable && a.header.Get("Retry-After") == "" {
		t.Error("a 503 has no Retry-After")
	}
}
