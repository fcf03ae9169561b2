package app

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/hack/localnet"
	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/hack/localnet/fault"
	"github.com/relaypool/relaypool/hack/localnet/router"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// withFormat configures the format of transactions.
func withFormat(format string) func(*config.Serve) {
	return func(c *config.Serve) { c.TransactionFormat = format }
}

// landedBytes reads a transaction from the chain, past the relay.
func (s *fixture) landedBytes(signature any) []byte {
	s.t.Helper()
	text, _ := signature.(string)
	sig, err := solana.SignatureFromBase58(text)
	must(s.t, err)
	version := uint64(1)
	node := rpc.New(s.listenEndpoint(localnet.DefaultEndpoint))
	got, err := node.GetTransaction(s.t.Context(), sig, &rpc.GetTransactionOpts{
		Encoding: solana.EncodingBase64, Commitment: rpc.CommitmentConfirmed, MaxSupportedTransactionVersion: &version,
	})
	must(s.t, err)
	return got.Transaction.GetBinary()
}

// callOf decodes the pool's instruction of a transaction.
func (s *fixture) callOf(raw []byte) *shieldpool.Call {
	s.t.Helper()
	tx, err := solana.TransactionFromBytes(raw)
	must(s.t, err)
	call, err := s.pool.Profile.ParseData(tx.Message.Instructions[shieldpool.FormatOf(raw).PoolInstruction()].Data)
	must(s.t, err)
	return call
}

// withdrawal returns the body of a withdrawal with notes.
func (f *forger) withdrawal(s *fixture, lamports int64, notes ...[]byte) map[string]any {
	s.t.Helper()
	to := newKey(s.t).PublicKey()
	in := f.inputs(s, -lamports, to)
	encoded := []string{}
	for _, n := range notes {
		encoded = append(encoded, base64.StdEncoding.EncodeToString(n))
	}
	return submissionBody(f.prove(s.t, in), in.Bytes(), map[string]any{"recipient": to.String(), "encrypted_notes": encoded})
}

// TestLongNotesLandAsVersion1 sends withdrawals to relays of each configuration.
func TestLongNotesLandAsVersion1(t *testing.T) {
	t.Parallel()
	long := [][]byte{bytes.Repeat([]byte{7}, 1000), bytes.Repeat([]byte{8}, 1048)}
	short := [][]byte{{7}, {8}}
	legacyBounds := map[string]any{"transfer": 289.0, "withdrawal": 257.0, "swap": 185.0}
	v1Bounds := map[string]any{"transfer": 3185.0, "withdrawal": 3153.0, "swap": 3081.0}
	pending := map[solana.PublicKey]bank.Account{localnet.TransactionV1Gate(): localnet.FeatureAccount(false)}
	for name, test := range map[string]struct {
		format   string
		accounts map[solana.PublicKey]bank.Account
		// wantBounds are the bounds by format that GET / shows.
		wantBounds map[string]any
		// wantShort and wantLong are the formats of withdrawals with short and with long notes;
		// "" for one that is refused.
		wantShort, wantLong shieldpool.Format
	}{
		"version 1 is off":              {config.FormatLegacy, nil, map[string]any{"legacy": legacyBounds}, shieldpool.Legacy, ""},
		"version 1 where it is needed":  {config.FormatAuto, nil, map[string]any{"legacy": legacyBounds, "v1": v1Bounds}, shieldpool.Legacy, shieldpool.V1},
		"version 1 always":              {config.FormatV1, nil, map[string]any{"v1": v1Bounds}, shieldpool.V1, shieldpool.V1},
		"the network has not activated": {config.FormatAuto, pending, map[string]any{"legacy": legacyBounds}, shieldpool.Legacy, ""},
		"always, but not yet activated": {config.FormatV1, pending, map[string]any{"legacy": legacyBounds}, shieldpool.Legacy, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, vk := newForger(t)
			s := newFixture(t, fixtureOptions{vk: vk, changeConfig: withFormat(test.format), accounts: test.accounts})
			s.waitHealthy()
			s.fundPool(10 * sol)
			info := s.call(http.MethodGet, "/", nil)
			if diff := cmp.Diff(any(test.wantBounds), info.at("limits", "note_envelope_max_bytes_by_format")); diff != "" {
				t.Errorf("bounds by format (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(any(legacyBounds), info.at("limits", "note_envelope_max_bytes")); diff != "" {
				t.Errorf("bounds in any case (-want +got)\n%s", diff)
			}
			for _, sent := range []struct {
				notes [][]byte
				want  shieldpool.Format
			}{{short, test.wantShort}, {long, test.wantLong}} {
				a := s.call(http.MethodPost, "/transact", f.withdrawal(s, sol, sent.notes...))
				if sent.want == "" {
					wantRefused(t, a, http.StatusBadRequest, "notes_too_large", "2058", "257")
					continue
				}
				if a.status != http.StatusOK {
					t.Fatalf("notes of %d bytes are answered %d %v", len(sent.notes[0]), a.status, a.body)
				}
				raw := s.landedBytes(a.body["signature"])
				if got := shieldpool.FormatOf(raw); got != sent.want {
					t.Errorf("notes of %d bytes landed as %s, want %s", len(sent.notes[0]), got, sent.want)
				}
				if diff := cmp.Diff(sent.notes, s.callOf(raw).Notes); diff != "" {
					t.Errorf("the notes on the chain differ (-sent +landed)\n%s", diff)
				}
			}
		})
	}
}

// TestAcceptedLongNotesWaitForVersion1 takes version 1 away after a submission was accepted that
// fits no other format, and gives it back.
func TestAcceptedLongNotesWaitForVersion1(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk, changeConfig: withFormat(config.FormatAuto)})
	s.fundPool(10 * sol)
	s.waitHealthy()
	stopSends := func(on bool) {
		var rules []fault.Rule
		if on {
			rules = []fault.Rule{{Method: "simulateTransaction", Status: http.StatusServiceUnavailable}}
		}
		must(t, s.chain.Endpoint(localnet.DefaultEndpoint).SetFaults(rules))
	}
	stopSends(true)
	a := s.call(http.MethodPost, "/transact", f.withdrawal(s, sol, make([]byte, 2000)), "Prefer", "respond-async")
	if a.status != http.StatusAccepted {
		t.Fatalf("the withdrawal is answered %d %v", a.status, a.body)
	}
	s.stop()
	s.startRelay(withFormat(config.FormatLegacy))
	stopSends(false)
	eventually(t, "the withdrawal is held by the format", func() bool {
		return s.call(http.MethodGet, "/backlog", nil).at("held", submission.HoldFormat) == 1.0
	})
	s.stop()
	s.startRelay(withFormat(config.FormatAuto))
	eventually(t, "the withdrawal has landed", func() bool {
		return s.call(http.MethodGet, a.header.Get("Location"), nil).at("data", "status") == "completed"
	})
	signature := s.call(http.MethodGet, a.header.Get("Location"), nil).at("data", "tx_id")
	if got := shieldpool.FormatOf(s.landedBytes(signature)); got != shieldpool.V1 {
		t.Errorf("the withdrawal landed as %s, want v1", got)
	}
}

// TestAProgramFailureInVersion1IsClassified withdraws more than the pool holds. In version 1
// the pool's instruction is the first; errors of other instructions are the relay's fault.
func TestAProgramFailureInVersion1IsClassified(t *testing.T) {
	t.Parallel()
	f, vk := newForger(t)
	s := newFixture(t, fixtureOptions{vk: vk, changeConfig: withFormat(config.FormatAuto)})
	s.waitHealthy()
	for name, notes := range map[string][]byte{"legacy": {1}, "version 1": make([]byte, 2000)} {
		a := s.call(http.MethodPost, "/transact", f.withdrawal(s, 1000*sol, notes))
		if a.body["code"] != "program_error" || a.body["program_code"] != "0x1031" {
			t.Errorf("%s: the withdrawal is answered %d %v, want program_error with Conservation", name, a.status, a.body)
		}
	}
}

// TestAWideRouteLandsAsVersion1 swaps over a route that fits no older format without lookup
// tables, from a router that names none of use.
func TestAWideRouteLandsAsVersion1(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{changeConfig: withFormat(config.FormatAuto)})
	s.setRouter(router.Settings{Wide: 34, Outside: true})
	var widths []string
	s.routerProxy.setHook(func(call string, query url.Values) {
		if call == router.CallQuote {
			widths = append(widths, query.Get("maxAccounts"))
		}
	})
	w := s.submitSwap(nil)
	a := w.waitExecuted()
	s.routerProxy.setHook(nil)
	// On a busy machine a quote may become too old, and is asked for again.
	if len(widths) == 0 || slices.ContainsFunc(widths, func(width string) bool { return width != "" }) {
		t.Errorf("routes of widths %q were asked for, want only the widest", widths)
	}
	raw := s.landedBytes(a.at("data", "swap_signature"))
	tx, err := solana.TransactionFromBytes(raw)
	must(t, err)
	if shieldpool.FormatOf(raw) != shieldpool.V1 || len(raw) <= shieldpool.MaxTransactionSize {
		t.Errorf("the execution is %s of %d bytes, want v1 of more than %d", shieldpool.FormatOf(raw), len(raw), shieldpool.MaxTransactionSize)
	}
	if n := len(tx.Message.AccountKeys); n <= 40 || n > shieldpool.MaxAddresses {
		t.Errorf("the execution has %d addresses, want more than 40 and at most %d", n, shieldpool.MaxAddresses)
	}
	// The first leg has no long notes.
	if got := shieldpool.FormatOf(s.landedBytes(w.firstSignature)); got != shieldpool.Legacy {
		t.Errorf("the first leg is %s, want legacy", got)
	}
	s.checkAccounting(notesRent + tokenRent)
}

// TestRefundsFollowTheFormat refunds a swap of a relay that sends version 1 alone.
func TestRefundsFollowTheFormat(t *testing.T) {
	t.Parallel()
	s := newSwapFixture(t, fixtureOptions{changeConfig: withFormat(config.FormatV1)})
	s.setRouter(withFault(fault.Rule{Cut: true}))
	w := s.submitSwap(nil)
	a := w.waitRefunded(0)
	for name, signature := range map[string]any{"first leg": w.firstSignature, "refund": a.at("data", "refund_signature")} {
		if got := shieldpool.FormatOf(s.landedBytes(signature)); got != shieldpool.V1 {
			t.Errorf("the %s is %s, want v1", name, got)
		}
	}
	s.checkAccounting(notesRent + stateRent)
}

// understated is a proxy of an endpoint whose simulations load one byte until it is told the
// truth.
func understated(t *testing.T, endpoint string) (proxied string, understatements *atomic.Int64) {
	t.Helper()
	understatements = new(atomic.Int64)
	target, err := url.Parse(endpoint)
	must(t, err)
	size := regexp.MustCompile(`"loadedAccountsDataSize":\d+`)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host})
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.StatusCode == http.StatusSwitchingProtocols {
			return nil
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		_ = r.Body.Close()
		if size.Match(body) {
			understatements.Add(1)
			body = size.ReplaceAll(body, []byte(`"loadedAccountsDataSize":1`))
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		r.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL + target.Path, understatements
}

// TestALimitOfLoadedDataThatIsTooLowIsRaised has simulations that understate what a transaction
// loads: a tree account of more than a page.
func TestALimitOfLoadedDataThatIsTooLowIsRaised(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("an attempt has to expire")
	}
	const roots = 4000 // 128 kB
	f, vk := newForger(t)
	var understatements *atomic.Int64
	s := newFixture(t, fixtureOptions{vk: vk, rootHistory: roots, slotDuration: 20 * time.Millisecond, changeConfig: func(c *config.Serve) {
		c.TransactionFormat, c.RootHistorySize = config.FormatV1, roots
		var proxied string
		proxied, understatements = understated(t, c.RPC.URL.Reveal())
		c.RPC.URL = config.NewSecret(proxied)
	}})
	s.waitHealthy()
	s.fundPool(10 * sol)
	a := s.call(http.MethodPost, "/transact", f.withdrawal(s, sol), "Prefer", "respond-async")
	eventually(t, "the withdrawal has landed", func() bool {
		return s.call(http.MethodGet, a.header.Get("Location"), nil).at("data", "status") == "completed"
	})
	if understatements.Load() < 2 {
		t.Errorf("%d simulations were understated, want one for each of two attempts", understatements.Load())
	}
	tx, err := solana.TransactionFromBytes(s.landedBytes(s.call(http.MethodGet, a.header.Get("Location"), nil).at("data", "tx_id")))
	must(t, err)
	if limit := *tx.Message.TransactionConfig.LoadedAccountsDataSizeLimit; limit < 32*roots || limit >= 64<<20 {
		t.Errorf("the transaction that landed may load %d bytes, want a raised limit below the maximum", limit)
	}
}
