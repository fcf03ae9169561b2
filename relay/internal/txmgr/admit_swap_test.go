package txmgr_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/admission"
	"github.com/relaypool/relaypool/relay/internal/commitments"
	"github.com/relaypool/relaypool/relay/internal/httpapi"
	"github.com/relaypool/relaypool/relay/internal/httpapi/httpapitest"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/viewingkey"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// tokenState reads mints and token accounts from a map, and everything else from the chain.
type tokenState struct {
	submission.PoolState
	mu    sync.Mutex
	held  map[solana.PublicKey]*onchain.Account
	reads int
	fault error
}

func (s *tokenState) Tokens(_ context.Context, mint, account solana.PublicKey) (onchain.Tokens, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return onchain.Tokens{Mint: s.held[mint], Account: s.held[account]}, s.fault
}

func (s *tokenState) Inspect(ctx context.Context, in *shieldpool.PublicInputs, recipient solana.PublicKey, minContextSlot uint64) (onchain.Inspection, error) {
	seen, err := s.PoolState.Inspect(ctx, in, recipient, minContextSlot)
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.held[recipient]; a != nil {
		seen.RecipientExists, seen.RecipientOwner = true, a.Owner
	}
	return seen, err
}

func (s *tokenState) put(key solana.PublicKey, a *onchain.Account) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[key] = a
}

func (s *tokenState) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

func mintAccount() *onchain.Account {
	data := make([]byte, shieldpool.TokenMintLength)
	data[45] = 1
	return &onchain.Account{Owner: solana.TokenProgramID, Lamports: 1_461_600, Data: data}
}

// holderAccount is a token account of the mint; state is 1, or 2 for a frozen one.
func holderAccount(mint, owner solana.PublicKey, state byte) *onchain.Account {
	data := make([]byte, shieldpool.TokenAccountLength)
	copy(data, mint[:])
	copy(data[32:], owner[:])
	data[108] = state
	return &onchain.Account{Owner: solana.TokenProgramID, Lamports: 2_039_280, Data: data}
}

// swapCase is the parts of a swap that a test changes before the swap is proven and sent.
type swapCase struct {
	w            *world
	state        *tokenState
	in           *shieldpool.PublicInputs
	terms        shieldpool.SwapTerms
	wallet       solana.PublicKey
	req          submission.Request
	proven, kept bool // proven: the proof is set; kept: the ext data hash is set
}

// swap is a valid swap: it names a wallet whose token account does not exist yet.
func (w *world) swap(state *tokenState) *swapCase {
	w.t.Helper()
	c := &swapCase{w: w, state: state, wallet: w.newKey().PublicKey(), in: w.inputs(-sol, solana.PublicKey{})}
	c.terms = shieldpool.SwapTerms{OutputMint: w.newKey().PublicKey(), MinOutput: 20_150_000}
	c.derive(c.wallet)
	state.put(c.terms.OutputMint, mintAccount())
	c.req.Recipient = c.wallet.String()
	return c
}

func (c *swapCase) derive(wallet solana.PublicKey) {
	ata, err := shieldpool.AssociatedTokenAccount(wallet, c.terms.OutputMint)
	must(c.w.t, err)
	c.terms.RecipientATA = ata
}

// request binds the terms to the inputs and proves them.
func (c *swapCase) request() submission.Request {
	c.w.t.Helper()
	if !c.kept {
		c.in.ExtDataHash = shieldpool.ExtDataHash(shieldpool.Destination{Swap: &c.terms})
	}
	if !c.proven {
		c.req.Proof = c.w.prove(c.in)
	}
	c.req.PublicInputs = c.in.Bytes()
	if c.req.Swap == nil {
		c.req.Swap = &submission.SwapRequest{OutputMint: c.terms.OutputMint.String(), RecipientATA: c.terms.RecipientATA.String(), MinOutput: c.terms.MinOutput}
	}
	return c.req
}

// swapAPI is a relay's HTTP interface over a real connection, with its log.
type swapAPI struct {
	*httptest.Server
	log *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// unusedServices stands for the services that swaps do not use.
type unusedServices struct{}

func (unusedServices) Newest(context.Context) (p commitments.Position, leaf [32]byte, err error) {
	return p, leaf, nil
}
func (unusedServices) Read(context.Context, uint64, uint64, int) ([]commitments.IndexedCommitment, error) {
	return nil, nil
}
func (unusedServices) Register(context.Context, viewingkey.Registration) (string, error) {
	return "", nil
}
func (unusedServices) Check(context.Context) httpapi.HealthReport { return httpapi.HealthReport{} }
func (unusedServices) Request(string, string, int, time.Duration) {}
func (unusedServices) ClientRequest(string, int)                  {}

func (w *world) serve(r *relay) *swapAPI {
	w.t.Helper()
	a := &swapAPI{log: new(lockedBuffer)}
	handler, err := httpapi.New(httpapi.Options{
		Admission: r, Submissions: r, Commitments: unusedServices{}, Tree: w.state, ViewingKeys: unusedServices{}, Health: unusedServices{}, Observer: unusedServices{},
		Info: httpapi.Info{
			Version: "0.0.1", Profile: w.pool.Profile, NoteBounds: r.NoteBounds(), NoteBoundsByFormat: r.NoteBoundsByFormat, ComplianceKey: [32]byte{1},
			Swaps: &httpapi.Swaps{RouterProgram: solana.PublicKey{1, 2}},
		},
		Log: slog.New(slog.NewJSONHandler(a.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now: time.Now, NewID: uuid.NewString, CallTimeout: testTimeout, WaitMax: testTimeout, ListStall: testTimeout, ListTime: testTimeout,
		FinalCommitments:     func() (generation, leaves uint64) { return 0, 0 },
		ProcessedCommitments: func(context.Context) (p commitments.Processed, err error) { return p, nil },
	})
	must(w.t, err)
	a.Server = httptest.NewServer(handler)
	w.t.Cleanup(a.Close)
	return a
}

// post sends a request as a client does, and returns the response's status and body.
func (a *swapAPI) post(t *testing.T, r submission.Request, header ...string) (int, map[string]any) {
	t.Helper()
	body := map[string]any{
		"proof_bytes": base64.StdEncoding.EncodeToString(r.Proof), "public_inputs": base64.StdEncoding.EncodeToString(r.PublicInputs),
		"output_mint": r.Swap.OutputMint, "recipient_ata": r.Swap.RecipientATA, "min_output_amount": strconv.FormatUint(r.Swap.MinOutput, 10),
	}
	if r.Recipient != "" {
		body["recipient"] = r.Recipient
	}
	var notes []string
	for _, n := range r.Notes {
		notes = append(notes, base64.StdEncoding.EncodeToString(n))
	}
	body["encrypted_notes"] = notes
	raw, err := json.Marshal(body)
	must(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, a.URL+"/transact_swap", bytes.NewReader(raw))
	must(t, err)
	req.Header.Set("Prefer", "respond-async")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := a.Client().Do(req)
	must(t, err)
	defer func() { _ = resp.Body.Close() }()
	answer := map[string]any{}
	must(t, json.Unmarshal(httpapitest.Validate(t, req, resp), &answer))
	return resp.StatusCode, answer
}

func TestInvalidSwapsAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	payer := w.payer.PublicKey()
	stranger := w.newKey().PublicKey()
	tests := map[string]struct {
		change      func(*swapCase)
		wantCode    refusal.Code
		wantMessage string // the start of the message
	}{
		"a transfer": {
			func(c *swapCase) { c.in.PublicAmount = 0 }, refusal.WithdrawalRequired,
			"publicAmount is zero, a transfer: this route accepts only withdrawals, expected below zero; send transfers to POST /transact",
		},
		"a deposit": {
			func(c *swapCase) { c.in.PublicAmount = sol }, refusal.DepositNotRelayed,
			"publicAmount is above zero, a deposit: expected zero or less",
		},
		"the smallest 64-bit amount": {
			func(c *swapCase) { c.in.PublicAmount = -1 << 63; c.req.Proof, c.proven = make([]byte, 256), true }, refusal.InvalidPublicAmount,
			"publicAmount is the smallest 64-bit integer",
		},
		"an amount that only covers the fee": {
			func(c *swapCase) { c.in.PublicAmount = -5_015_045 }, refusal.AmountBelowFee,
			"the withdrawal is not above its fee of 5000000 lamports and 3/1000 of the amount",
		},
		"a first nullifier of zero": {
			func(c *swapCase) { c.in.Nullifiers[0] = [32]byte{} }, refusal.InvalidSwap,
			"nullifier 0 is zero, and the swap's account on the chain is named by it, so every such swap would share one: expected a note's nullifier there; a missing input goes second",
		},
		"two nullifiers of zero": {
			func(c *swapCase) { c.in.Nullifiers = [2][32]byte{} }, refusal.NoInput, "both nullifiers are zero",
		},
		"a minimum of zero": {
			func(c *swapCase) { c.terms.MinOutput = 0 }, refusal.InvalidSwap,
			"min_output_amount is not an amount: expected a whole number from 1 to 18446744073709551615 in the output mint's smallest unit, as a JSON number or a string, in decimal digits alone; received a string that is zero",
		},
		"an output mint that is not base58": {
			func(c *swapCase) { c.sendText("O0Il", "") }, refusal.InvalidSwap,
			"output_mint is not an address: expected 32 bytes in base58, received 4 characters that are not",
		},
		"an output mint that is empty": {
			func(c *swapCase) { c.sendText("x", ""); c.req.Swap.OutputMint = "" }, refusal.InvalidSwap,
			"output_mint is not an address: expected 32 bytes in base58, received 0 characters that are not",
		},
		"an output mint of 31 bytes": {
			func(c *swapCase) { c.sendText(strings.Repeat("1", 31), "") }, refusal.InvalidSwap,
			"output_mint is not an address: expected 32 bytes in base58, received 31 characters that are not",
		},
		"a token account that is not base58": {
			func(c *swapCase) { c.sendText("", "0x"+strings.Repeat("0", 40)) }, refusal.InvalidSwap,
			"recipient_ata is not an address: expected 32 bytes in base58, received 42 characters that are not",
		},
		"a token account of 66 characters": {
			func(c *swapCase) { c.sendText("", "0x"+strings.Repeat("0", 64)) }, refusal.InvalidSwap,
			"recipient_ata has 66 characters: expected the address of the recipient's token account in base58, at most 44",
		},
		"an output of wrapped SOL": {
			func(c *swapCase) { c.terms.OutputMint = solana.WrappedSol; c.derive(c.wallet) }, refusal.InvalidSwap,
			"output_mint is wrapped SOL, which is what a swap starts from: expected another mint; withdraw SOL with POST /transact or POST /withdraw",
		},
		"a recipient that is not base58": {
			func(c *swapCase) { c.req.Recipient = "somebody?" }, refusal.InvalidRecipient,
			"recipient is not an address: expected 32 bytes in base58, received 9 characters that are not",
		},
		"a recipient off the curve": {
			func(c *swapCase) { c.pay(c.w.pool.Treasury) }, refusal.InvalidRecipient,
			"recipient is off the ed25519 curve",
		},
		"a recipient that is the fee payer": {
			func(c *swapCase) { c.pay(payer) }, refusal.InvalidRecipient,
			"recipient is the transaction's payer account: expected a wallet of the client's own",
		},
		"a recipient that is the token program": {
			func(c *swapCase) { c.pay(solana.TokenProgramID) }, refusal.InvalidRecipient,
			"recipient is an account or program of the swap itself: expected a wallet of the client's own",
		},
		"a recipient that is the output mint": {
			func(c *swapCase) { c.pay(c.terms.OutputMint) }, refusal.InvalidRecipient,
			"recipient is an account or program of the swap itself: expected a wallet of the client's own",
		},
		"another wallet's token account": {
			func(c *swapCase) { c.derive(stranger) }, refusal.InvalidSwap,
			"recipient_ata is not the recipient's associated token account for output_mint: expected the address that recipient, the SPL Token program and output_mint derive",
		},
		"a token account of another mint": {
			func(c *swapCase) {
				c.terms.OutputMint = stranger
				c.derive(c.wallet)
				c.terms.OutputMint = c.w.newKey().PublicKey()
			}, refusal.InvalidSwap,
			"recipient_ata is not the recipient's associated token account for output_mint",
		},
		"the wallet in place of its token account": {
			func(c *swapCase) { c.terms.RecipientATA = c.wallet }, refusal.InvalidSwap,
			"recipient_ata is not the recipient's associated token account for output_mint",
		},
		"ext data of a withdrawal to the recipient": {
			func(c *swapCase) {
				c.kept, c.in.ExtDataHash = true, shieldpool.ExtDataHash(shieldpool.Destination{Recipient: c.wallet})
			}, refusal.ExtDataMismatch,
			"extDataHash does not bind this swap: expected 0x00 and the first 31 bytes of sha256 of output_mint ‖ recipient_ata ‖ min_output_amount, the addresses as 32 bytes each and the amount as u64 little-endian; make the proof for the swap that the request names",
		},
		"a minimum below the minimum that the proof binds": {
			func(c *swapCase) {
				c.kept, c.in.ExtDataHash = true, shieldpool.ExtDataHash(shieldpool.Destination{Swap: &c.terms})
				c.terms.MinOutput--
			}, refusal.ExtDataMismatch, "extDataHash does not bind this swap",
		},
		"a token account that the proof does not bind": {
			func(c *swapCase) {
				c.kept, c.in.ExtDataHash = true, shieldpool.ExtDataHash(shieldpool.Destination{Swap: &c.terms})
				c.pay(stranger)
			}, refusal.ExtDataMismatch, "extDataHash does not bind this swap",
		},
		"notes that do not fit into a swap's transaction": {
			func(c *swapCase) { c.req.Notes = [][]byte{make([]byte, 185-8+1)} }, refusal.NotesTooLarge,
			"encrypted_notes take 186 bytes in the transaction (including an envelope of 6 bytes plus 2 for each note), expected at most 185",
		},
		"three notes": {
			func(c *swapCase) { c.req.Notes = [][]byte{{1}, {2}, {3}} }, refusal.TooManyNotes, "encrypted_notes has 3 entries",
		},
		"a mint that the pool does not have": {
			func(c *swapCase) { c.in.MintAddress = [32]byte{31: 1} }, refusal.UnknownMint, "mintAddress is the field value of no mint of this pool",
		},
		"a proof of other public inputs": {
			func(c *swapCase) { c.req.Proof, c.proven = c.w.prove(c.in), true }, refusal.ProofInvalid,
			"the proof does not verify for these public inputs under the pool's verifying key",
		},
		"a root that never existed": {
			func(c *swapCase) { c.in.Root = [32]byte{31: 9} }, refusal.RootNotFound, "RootNotFound (stale Merkle root)",
		},
		"an output mint that does not exist": {
			func(c *swapCase) { c.state.put(c.terms.OutputMint, nil) }, refusal.InvalidSwap,
			"output_mint does not exist on the chain: expected the address of a mint of the SPL Token program",
		},
		"a mint of Token-2022": {
			func(c *swapCase) {
				m := mintAccount()
				m.Owner = solana.Token2022ProgramID
				c.state.put(c.terms.OutputMint, m)
			}, refusal.InvalidSwap,
			"output_mint belongs to the Token-2022 program: expected a mint of the SPL Token program, the only one that swaps pay out; choose another token",
		},
		"an output mint that is a wallet": {
			func(c *swapCase) { c.state.put(c.terms.OutputMint, &onchain.Account{Owner: solana.SystemProgramID}) }, refusal.InvalidSwap,
			"output_mint is not a mint: its account does not belong to the SPL Token program; expected the address of a mint",
		},
		"an output mint that is a token account": {
			func(c *swapCase) { c.state.put(c.terms.OutputMint, holderAccount(stranger, stranger, 1)) }, refusal.InvalidSwap,
			"output_mint is an account of the SPL Token program, but no initialised mint: expected the address of a mint, not of a token account",
		},
		"an output mint that is not initialised": {
			func(c *swapCase) {
				c.state.put(c.terms.OutputMint, &onchain.Account{Owner: solana.TokenProgramID, Data: make([]byte, shieldpool.TokenMintLength)})
			}, refusal.InvalidSwap,
			"output_mint is an account of the SPL Token program, but no initialised mint",
		},
		"no recipient and no token account": {
			func(c *swapCase) { c.req.Recipient = "" }, refusal.RecipientRequired,
			"recipient is missing, and recipient_ata does not exist yet, so the relay cannot determine its owner: expected the base58 address of the wallet that is to own it",
		},
		"no recipient and lamports on the token account's address": {
			func(c *swapCase) {
				c.req.Recipient = ""
				c.state.put(c.terms.RecipientATA, &onchain.Account{Owner: solana.SystemProgramID, Lamports: 1})
			}, refusal.RecipientRequired, "recipient is missing, and recipient_ata does not exist yet",
		},
		"no recipient and a token account that is not its owner's associated token account": {
			func(c *swapCase) {
				c.req.Recipient = ""
				c.state.put(c.terms.RecipientATA, holderAccount(c.terms.OutputMint, stranger, 1))
			}, refusal.InvalidSwap,
			"recipient_ata is not the associated token account of its owner for output_mint: expected the address that the owner, the SPL Token program and output_mint derive",
		},
		"no recipient and the fee payer's token account": {
			func(c *swapCase) {
				c.req.Recipient = ""
				c.derive(payer)
				c.state.put(c.terms.RecipientATA, holderAccount(c.terms.OutputMint, payer, 1))
			}, refusal.InvalidRecipient, "recipient is the transaction's payer account",
		},
		"no recipient and a token account whose owner is off the curve": {
			func(c *swapCase) {
				c.req.Recipient = ""
				c.derive(c.w.pool.Treasury)
				c.state.put(c.terms.RecipientATA, holderAccount(c.terms.OutputMint, c.w.pool.Treasury, 1))
			}, refusal.InvalidRecipient, "recipient is off the ed25519 curve",
		},
		"a token account with another owner": {
			func(c *swapCase) {
				c.state.put(c.terms.RecipientATA, holderAccount(c.terms.OutputMint, stranger, 1))
			}, refusal.InvalidSwap,
			"recipient_ata exists and belongs to another owner than the recipient: expected a token account that the recipient owns",
		},
		"a token account that is frozen": {
			func(c *swapCase) { c.state.put(c.terms.RecipientATA, holderAccount(c.terms.OutputMint, c.wallet, 2)) }, refusal.InvalidSwap,
			"recipient_ata is frozen by the authority of its mint, so nothing can be paid into it: choose another token or another recipient",
		},
		"no recipient and a frozen token account": {
			func(c *swapCase) {
				c.req.Recipient = ""
				c.state.put(c.terms.RecipientATA, holderAccount(c.terms.OutputMint, c.wallet, 2))
			}, refusal.InvalidSwap, "recipient_ata is frozen",
		},
		"a token account of another mint at the right address": {
			func(c *swapCase) { c.state.put(c.terms.RecipientATA, holderAccount(stranger, c.wallet, 1)) }, refusal.InvalidSwap,
			"recipient_ata holds tokens of another mint than output_mint: expected the recipient's associated token account for output_mint",
		},
		"a token account that is not initialised": {
			func(c *swapCase) { c.state.put(c.terms.RecipientATA, holderAccount(c.terms.OutputMint, c.wallet, 0)) }, refusal.InvalidSwap,
			"recipient_ata is an account of the SPL Token program, but no token account",
		},
		"a mint in place of the token account": {
			func(c *swapCase) { c.state.put(c.terms.RecipientATA, mintAccount()) }, refusal.InvalidSwap,
			"recipient_ata is an account of the SPL Token program, but no token account",
		},
		"a token account of another program": {
			func(c *swapCase) {
				a := holderAccount(c.terms.OutputMint, c.wallet, 1)
				a.Owner = solana.Token2022ProgramID
				c.state.put(c.terms.RecipientATA, a)
			}, refusal.InvalidSwap, "recipient_ata belongs to another program than SPL Token",
		},
		"a recipient whose account is a program's": {
			func(c *swapCase) { c.state.put(c.wallet, holderAccount(stranger, stranger, 1)) }, refusal.InvalidRecipient,
			"the recipient's account belongs to a program other than the system program, so it is no wallet and a refund might be lost in it: expected a wallet's own address",
		},
	}
	// The relay is not running: all requests are refused before anything is stored.
	state := &tokenState{PoolState: w.state, held: map[solana.PublicKey]*onchain.Account{}}
	r := w.assemble(parts{state: state})
	api := w.serve(r)
	var secrets sync.Map // values of the requests, which neither answers nor the log may contain
	t.Run("cases", func(t *testing.T) {
		for name, tt := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				c := w.swap(state)
				tt.change(c)
				req := c.request()
				for _, v := range []string{req.Swap.OutputMint, req.Swap.RecipientATA, req.Recipient, "20150000"} {
					if len(v) > 8 {
						secrets.Store(v, true)
					}
				}
				status, body := api.post(t, req)
				message, _ := body["message"].(string)
				if status != tt.wantCode.HTTPStatus() || body["code"] != string(tt.wantCode) || !strings.HasPrefix(message, tt.wantMessage) {
					t.Errorf("answered %d %v: %q\nwant %d %s: %q", status, body["code"], message, tt.wantCode.HTTPStatus(), tt.wantCode, tt.wantMessage)
				}
				text := fmt.Sprint(body)
				secrets.Range(func(v, _ any) bool {
					if strings.Contains(text, v.(string)) {
						t.Errorf("the answer contains a value of a request: %s", text)
					}
					return true
				})
			})
		}
	})
	log := api.log.String()
	secrets.Range(func(v, _ any) bool {
		if strings.Contains(log, v.(string)) {
			t.Errorf("the log contains %s, a value of a request", v)
		}
		return true
	})
	backlog, err := w.store.Backlog(t.Context())
	must(t, err)
	if backlog.Pending+backlog.Processing != 0 {
		t.Errorf("%d refused requests are stored, want none", backlog.Pending+backlog.Processing)
	}
}

// sendText sends the given text as mint or token account, unless the text is empty.
func (c *swapCase) sendText(mint, ata string) {
	c.req.Swap = &submission.SwapRequest{OutputMint: c.terms.OutputMint.String(), RecipientATA: c.terms.RecipientATA.String(), MinOutput: c.terms.MinOutput}
	if mint != "" {
		c.req.Swap.OutputMint = mint
	}
	if ata != "" {
		c.req.Swap.RecipientATA = ata
	}
}

// pay makes another wallet the recipient, with its token account.
func (c *swapCase) pay(wallet solana.PublicKey) {
	c.req.Recipient = wallet.String()
	c.derive(wallet)
}

func TestValidSwapsAreAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tests := map[string]func(*swapCase){
		"a recipient whose token account does not exist": func(*swapCase) {},
		"a recipient whose token account exists": func(c *swapCase) {
			c.state.put(c.terms.RecipientATA, holderAccount(c.terms.OutputMint, c.wallet, 1))
		},
		"no recipient, and a token account that exists": func(c *swapCase) {
			c.req.Recipient = ""
			c.state.put(c.terms.RecipientATA, holderAccount(c.terms.OutputMint, c.wallet, 1))
		},
		"lamports at the token account's address": func(c *swapCase) {
			c.state.put(c.terms.RecipientATA, &onchain.Account{Owner: solana.SystemProgramID, Lamports: 1})
		},
		"a wallet that exists": func(c *swapCase) { c.state.put(c.wallet, &onchain.Account{Owner: solana.SystemProgramID, Lamports: 1}) },
		"one note to spend":    func(c *swapCase) { c.in.Nullifiers[1] = [32]byte{} },
		"the smallest amount":  func(c *swapCase) { c.in.PublicAmount = -5_015_046 },
		"the smallest minimum": func(c *swapCase) { c.terms.MinOutput = 1 },
		"the largest minimum":  func(c *swapCase) { c.terms.MinOutput = 1<<64 - 1 },
		"as many notes as fit": func(c *swapCase) { c.req.Notes = [][]byte{make([]byte, 100), make([]byte, 185-10-100)} },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			state := &tokenState{PoolState: w.state, held: map[solana.PublicKey]*onchain.Account{}}
			caps := &recordingCaps{}
			r := w.assemble(parts{state: state, spending: caps})
			c := w.swap(state)
			change(c)
			req := c.request()
			status, body := w.serve(r).post(t, req)
			if status != http.StatusAccepted {
				t.Fatalf("answered %d, want 202: %v", status, body)
			}
			pda, _, err := w.pool.SwapState(c.in.Nullifiers[0])
			must(t, err)
			nullifier := fmt.Sprintf("%x", c.in.Nullifiers[0])
			data, _ := body["data"].(map[string]any)
			for where, fields := range map[string]map[string]any{"top": body, "data": data} {
				if fields["swap_state_pda"] != pda.String() || fields["nullifier"] != nullifier {
					t.Errorf("%s: swap_state_pda %v, nullifier %v", where, fields["swap_state_pda"], fields["nullifier"])
				}
			}
			id, err := uuid.Parse(fmt.Sprint(body["request_id"]))
			must(t, err)
			s := w.get(id)
			want := shieldpool.Destination{Recipient: c.wallet, Swap: &c.terms}
			if diff := cmp.Diff(want, s.Call.Destination); diff != "" || s.Kind != shieldpool.KindSwap {
				t.Errorf("kind %s, destination (-want +got):\n%s", s.Kind, diff)
			}
			nullifiers := uint64(2)
			if !c.in.HasNullifier(1) {
				nullifiers = 1
			}
			// The caps also check the second leg's fee and the rent of the token account that it makes.
			if wantCost := nullifiers*650_240 + 1_468_120 + 1_488_440 + 2*5000; caps.lamports != wantCost || caps.transfer {
				t.Errorf("the caps checked %d lamports (of a transfer: %v), want %d, not of a transfer", caps.lamports, caps.transfer, wantCost)
			}
		})
	}
}

// recordingCaps records the cost that admission checked.
type recordingCaps struct {
	unlimited
	lamports uint64
	transfer bool
}

func (a *recordingCaps) Ready(_ context.Context, transfer bool, lamports uint64) error {
	a.transfer, a.lamports = transfer, lamports
	return nil
}

func TestRepeatedSwapReturnsFirstSubmission(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	state := &tokenState{PoolState: w.state, held: map[solana.PublicKey]*onchain.Account{}}
	api := w.serve(w.assemble(parts{state: state}))
	c := w.swap(state)
	req := c.request()
	status, first := api.post(t, req, "Idempotency-Key", "a-key")
	if status != http.StatusAccepted {
		t.Fatalf("answered %d, want 202: %v", status, first)
	}
	reads := state.count()
	other := func(change func(*swapCase)) submission.Request {
		again := *c
		again.in, again.req = new(*c.in), submission.Request{Recipient: c.req.Recipient}
		change(&again)
		return again.request()
	}
	tests := map[string]struct {
		req      submission.Request
		header   []string
		wantCode refusal.Code // empty when the first submission is returned
	}{
		"the same request":                      {req: req},
		"the same with other notes":             {req: other(func(c *swapCase) { c.req.Notes = [][]byte{{1, 2}} })},
		"the same without naming the recipient": {req: other(func(c *swapCase) { c.req.Recipient = "" })},
		"the same idempotency key":              {req: req, header: []string{"Idempotency-Key", "a-key"}},
		"another minimum with the same notes":   {req: other(func(c *swapCase) { c.terms.MinOutput++ }), wantCode: refusal.NullifierReserved},
		"another token account":                 {req: other(func(c *swapCase) { c.pay(w.newKey().PublicKey()) }), wantCode: refusal.NullifierReserved},
		"the same key with another minimum": {
			req: other(func(c *swapCase) { c.terms.MinOutput++ }), header: []string{"Idempotency-Key", "a-key"}, wantCode: refusal.NullifierReserved,
		},
	}
	t.Run("repeats", func(t *testing.T) {
		for name, tt := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel() // a repeat waits for the outcome
				status, body := api.post(t, tt.req, tt.header...)
				if tt.wantCode != "" {
					if status != tt.wantCode.HTTPStatus() || body["code"] != string(tt.wantCode) {
						t.Errorf("answered %d: %v, want %s", status, body, tt.wantCode)
					}
					return
				}
				if status != http.StatusAccepted || body["request_id"] != first["request_id"] {
					t.Errorf("answered %d: %v, want submission %v", status, body, first["request_id"])
				}
			})
		}
	})
	if n := state.count(); n != reads {
		t.Errorf("repeats read the chain %d times, want 0: the database knows the submission", n-reads)
	}
	// The same inputs as a withdrawal to the recipient: the proof does not bind a withdrawal.
	withdrawal, err := json.Marshal(map[string]any{"proof_bytes": req.Proof, "public_inputs": req.PublicInputs, "recipient": req.Recipient})
	must(t, err)
	resp, err := api.Client().Post(api.URL+"/withdraw", "application/json", bytes.NewReader(withdrawal))
	must(t, err)
	defer func() { _ = resp.Body.Close() }()
	var answer struct{ Code string }
	must(t, json.NewDecoder(resp.Body).Decode(&answer))
	if answer.Code != string(refusal.ExtDataMismatch) {
		t.Errorf("a swap's proof for a withdrawal was answered %d %s, want %s", resp.StatusCode, answer.Code, refusal.ExtDataMismatch)
	}
}

func TestForgedSwapCausesNoChainRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	state := &tokenState{PoolState: w.state, held: map[solana.PublicKey]*onchain.Account{}}
	c := w.swap(state)
	c.req.Proof, c.proven = make([]byte, shieldpool.ProofLength), true
	_, err := w.assemble(parts{state: state}).Submit(t.Context(), c.request())
	_ = wantCode(t, err, refusal.ProofInvalid)
	if n := state.count(); n != 0 {
		t.Errorf("the forged swap caused %d reads of the chain, want 0", n)
	}
}

// TestAdmissionChecksSwapsWithoutHTTPRoute submits requests that the HTTP route would have refused: admission
// does not depend on the route.
func TestAdmissionChecksSwapsWithoutHTTPRoute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	state := &tokenState{PoolState: w.state, held: map[solana.PublicKey]*onchain.Account{}}
	r := w.assemble(parts{state: state})
	transfer, noMinimum := w.swap(state), w.swap(state)
	transfer.in.PublicAmount, noMinimum.terms.MinOutput = 0, 0
	_, err := r.Submit(t.Context(), transfer.request())
	_ = wantCode(t, err, refusal.WithdrawalRequired)
	_, err = r.Submit(t.Context(), noMinimum.request())
	_ = wantCode(t, err, refusal.InvalidSwap)
}

func TestSwapIsRefusedWhileChainIsUnavailable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	state := &tokenState{PoolState: w.state, held: map[solana.PublicKey]*onchain.Account{}, fault: refusal.New(refusal.ChainUnavailable, "no chain")}
	_, err := w.assemble(parts{state: state}).Submit(t.Context(), w.swap(state).request())
	_ = wantCode(t, err, refusal.ChainUnavailable)
}

// TestSwapRecipientsOffTheCurve uses a profile that admits recipients off the curve, such as vaults: the
// swap's own accounts are still refused.
func TestSwapRecipientsOffTheCurve(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	profile := *w.pool.Profile
	profile.AllowOffCurveRecipient = true
	pool, err := profile.Pool(profile.Mints[0])
	must(t, err)
	w.pool = pool
	vault, _, err := solana.FindProgramAddress([][]byte{[]byte("vault")}, solana.PublicKey{8})
	must(t, err)
	accountOf := func(choose func(*shieldpool.Swap) solana.PublicKey) func(*swapCase) solana.PublicKey {
		return func(c *swapCase) solana.PublicKey {
			swap, err := pool.Swap(c.in.Nullifiers[0], c.terms)
			must(t, err)
			return choose(swap)
		}
	}
	tests := map[string]struct {
		wallet func(*swapCase) solana.PublicKey
		want   refusal.Code
	}{
		"a vault":                  {func(*swapCase) solana.PublicKey { return vault }, ""},
		"the swap state":           {accountOf(func(s *shieldpool.Swap) solana.PublicKey { return s.State }), refusal.InvalidRecipient},
		"the swap's SOL account":   {accountOf(func(s *shieldpool.Swap) solana.PublicKey { return s.WSOL }), refusal.InvalidRecipient},
		"the swap's token account": {accountOf(func(s *shieldpool.Swap) solana.PublicKey { return s.Output }), refusal.InvalidRecipient},
		"the pool":                 {func(*swapCase) solana.PublicKey { return pool.Address }, refusal.InvalidRecipient},
		"the token program itself": {func(*swapCase) solana.PublicKey { return solana.TokenProgramID }, refusal.InvalidRecipient},
	}
	for name, tt := range tests {
		for _, named := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, named: %v", name, named), func(t *testing.T) {
				state := &tokenState{PoolState: w.state, held: map[solana.PublicKey]*onchain.Account{}}
				c := w.swap(state)
				wallet := tt.wallet(c)
				c.pay(wallet)
				if !named {
					c.req.Recipient = ""
					state.put(c.terms.RecipientATA, holderAccount(c.terms.OutputMint, wallet, 1))
				}
				s, err := w.assemble(parts{state: state}).Submit(t.Context(), c.request())
				if tt.want != "" {
					_ = wantCode(t, err, tt.want)
					return
				}
				must(t, err)
				if !s.Call.Recipient.Equals(wallet) {
					t.Errorf("the swap pays %s, want the vault %s", s.Call.Recipient, wallet)
				}
			})
		}
	}
}

func TestSwapOfAnotherMintThanSOLIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	profile := *w.pool.Profile
	profile.Mints = append(profile.Mints[:1:1], shieldpool.Mint{Address: solana.PublicKey{3}, Field: [32]byte{31: 7}})
	pool, err := profile.Pool(profile.Mints[0])
	must(t, err)
	w.pool = pool
	state := &tokenState{PoolState: w.state, held: map[solana.PublicKey]*onchain.Account{}}
	c := w.swap(state)
	c.in.MintAddress = profile.Mints[1].Field
	_, err = w.assemble(parts{state: state}).Submit(t.Context(), c.request())
	r := wantCode(t, err, refusal.InvalidSwap)
	if !strings.HasPrefix(r.Message, "mintAddress stands for another mint than wrapped SOL") {
		t.Errorf("the message is %q, want it to name the wrong mint", r.Message)
	}
}

func TestLookupTableRaisesNoteBoundOfSwaps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.relay(nil)
	want := map[shieldpool.Kind]int{shieldpool.KindTransfer: 289, shieldpool.KindWithdrawal: 257, shieldpool.KindSwap: 185}
	if diff := cmp.Diff(want, r.NoteBounds()); diff != "" {
		t.Errorf("bounds of legacy transactions (-want +got):\n%s", diff)
	}
	r.handler.Table = &shieldpool.LookupTable{Address: solana.PublicKey{9}, Addresses: w.pool.Constant()}
	with, err := admission.New(r.Admission.Options)
	must(t, err)
	if n := with.NoteBounds()[shieldpool.KindSwap]; n != 273 {
		t.Errorf("the note bound of a swap with a lookup table is %d bytes, want 273", n)
	}
}
