package swap

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	testLamports = 1_000_000_000
	testMinimum  = 100_000
	testCreated  = 1000
	testTimeout  = testCreated + 200
)

func key(b ...byte) solana.PublicKey {
	k := solana.PublicKey{0: 0xaa}
	copy(k[28:], b)
	return k
}

// testWallet is on the curve and has an associated token account.
func testWallet() solana.PublicKey {
	return solana.MustPublicKeyFromBase58("9B5XszUGdMaxCZ7uSQhPzdks5ZQSmWxrmzCSvtJ6Ns6g")
}

// fakeChain answers with the accounts that a test puts there.
type fakeChain struct {
	accounts map[solana.PublicKey]*onchain.Account
	slot     uint64
	swapEnd  *onchain.SwapEnd
	// err is the error of every call, and tableErr of calls that read a lookup table.
	err, tableErr  error
	minContextSlot uint64
	// uncorroborated says that no second endpoint confirms the slot.
	uncorroborated bool
	// searches counts the searches of the history; first and last are the range of the
	// last search.
	searches    int
	first, last uint64
}

func (c *fakeChain) Accounts(_ context.Context, keys []solana.PublicKey, commitment onchain.Commitment, minContextSlot uint64) ([]*onchain.Account, uint64, error) {
	if c.err != nil {
		return nil, 0, c.err
	}
	if commitment != onchain.Confirmed {
		panic("the chain is read at commitment " + string(commitment))
	}
	out := make([]*onchain.Account, len(keys))
	for i, k := range keys {
		out[i] = c.accounts[k]
		if out[i] != nil && out[i].Owner == solana.AddressLookupTableProgramID && c.tableErr != nil {
			return nil, 0, c.tableErr
		}
	}
	c.minContextSlot = minContextSlot
	return out, c.slot, nil
}

func (c *fakeChain) Corroborated(uint64) bool { return !c.uncorroborated }

func (c *fakeChain) FindSwapEnd(_ context.Context, _ *shieldpool.Swap, first, last uint64) (*onchain.SwapEnd, error) {
	c.searches++
	c.first, c.last = first, last
	return c.swapEnd, c.err
}

// fakeRouter is honest unless a test changes its answers.
type fakeRouter struct {
	w *world
	// out is the output for the lamports.
	out uint64
	// padding returns how many unused accounts the instruction names, for the request
	// of its quote; nil for none. A test's lookup table may hold them.
	padding  func(QuoteRequest) int
	table    *solana.PublicKey
	quoteErr func(QuoteRequest) error
	ixErr    error
	// changeQuote and changeIx alter the honest answers.
	changeQuote func(*Quote)
	changeIx    func(*Instructions)

	requests []QuoteRequest
}

func (f *fakeRouter) Quote(_ context.Context, r QuoteRequest) (*Quote, error) {
	f.requests = append(f.requests, r)
	if f.quoteErr != nil {
		if err := f.quoteErr(r); err != nil {
			return nil, err
		}
	}
	q := &Quote{
		Router: "a", InAmount: r.Amount, OutAmount: f.out, Threshold: f.out - f.out*uint64(r.SlippageBps)/wholeBps,
		ContextSlot: f.w.chain.slot, Received: f.w.now,
	}
	if f.changeQuote != nil {
		f.changeQuote(q)
	}
	return q, nil
}

func (f *fakeRouter) Instructions(_ context.Context, q *Quote, user solana.PublicKey) (*Instructions, error) {
	if f.ixErr != nil {
		return nil, f.ixErr
	}
	ix := f.w.instructions(user, q)
	if f.padding != nil {
		for i := range f.padding(f.requests[len(f.requests)-1]) {
			ix.Accounts = append(ix.Accounts, solana.AccountMeta{PublicKey: key(9, byte(i))})
		}
	}
	if f.table != nil {
		ix.LookupTables = append(ix.LookupTables, *f.table)
	}
	if f.changeIx != nil {
		f.changeIx(ix)
	}
	return ix, nil
}

func (f *fakeRouter) Len() int { return max(1, f.w.routers) }

// events are what a planner has reported and logged.
type events struct {
	mu        sync.Mutex
	deferrals []string
	rejected  []string
	log       bytes.Buffer
}

func (e *events) SwapDeferred(reason string) { e.deferrals = append(e.deferrals, reason) }
func (e *events) RouteRejected(what string)  { e.rejected = append(e.rejected, what) }
func (e *events) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.log.Write(p)
}

type keys []solana.PublicKey

func (k keys) Keys() []solana.PublicKey { return k }

// world is a swap that was funded at testCreated, its chain and its planner.
type world struct {
	t          *testing.T
	now        time.Time
	pool       *shieldpool.Pool
	swap       *shieldpool.Swap
	wallet     solana.PublicKey
	submission *submission.Submission
	chain      *fakeChain
	router     *fakeRouter
	events     *events
	planner    *Planner
	ownTable   *shieldpool.LookupTable
	routers    int // 0 means 1
	tries      int // earlier tries of the swap
	payer      solana.PublicKey
}

func (w *world) options() Options {
	return Options{
		Chain: w.chain, Router: w.router, Pool: w.pool, RouterProgram: key(7), Payers: keys{w.payer, key(51)}, SlippageBps: 50, Observer: w.events,
		Log: slog.New(slog.NewTextHandler(w.events, nil)), Now: func() time.Time { return w.now }, Table: w.ownTable,
		SlotDuration: func() time.Duration { return testSlot },
	}
}

// newWorld makes a world at slot testCreated + 10, four seconds after the funding, with only
// the swap state on the chain; change may be nil.
func newWorld(t *testing.T, change func(*world)) *world {
	t.Helper()
	profile := shieldpool.Development()
	pool, err := profile.Pool(profile.Mints[0])
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, now: time.Unix(1_700_000_000, 0), pool: pool, wallet: testWallet(), payer: key(50), events: new(events)}
	mint := key(3)
	ata, err := shieldpool.AssociatedTokenAccount(w.wallet, mint)
	if err != nil {
		t.Fatal(err)
	}
	terms := shieldpool.SwapTerms{OutputMint: mint, RecipientATA: ata, MinOutput: testMinimum}
	nullifiers := [2][32]byte{{31: 1}, {31: 2}}
	if w.swap, err = pool.Swap(nullifiers[0], terms); err != nil {
		t.Fatal(err)
	}
	parent := uuid.UUID{1}
	w.submission = &submission.Submission{
		ID: uuid.UUID{2}, Parent: &parent, Kind: submission.KindSwapExecution, State: submission.Processing,
		Call: &shieldpool.Call{
			Inputs:      &shieldpool.PublicInputs{PublicAmount: -testLamports, Nullifiers: nullifiers},
			Destination: shieldpool.Destination{Recipient: w.wallet, Swap: &terms},
		},
		Swap:      &submission.Swap{Phase: submission.PhaseFunded, TimeoutSlot: testTimeout},
		CreatedAt: w.now.Add(-4 * time.Second),
	}
	w.chain = &fakeChain{accounts: map[solana.PublicKey]*onchain.Account{}, slot: testCreated + 10}
	w.router = &fakeRouter{w: w, out: 2 * testMinimum}
	w.putSwapState(nil)
	if change != nil {
		change(w)
	}
	if w.planner, err = New(w.options()); err != nil {
		t.Fatal(err)
	}
	return w
}

// putSwapState puts the swap state on the chain; change may be nil.
func (w *world) putSwapState(change func(*shieldpool.SwapState)) {
	s := &shieldpool.SwapState{
		Nullifier: w.swap.Nullifier, Lamports: testLamports, OutputMint: w.swap.Terms.OutputMint, RecipientATA: w.swap.Terms.RecipientATA,
		MinOutput: testMinimum, CreatedSlot: testCreated, TimeoutSlot: testTimeout, Bump: w.swap.Bump,
	}
	if change != nil {
		change(s)
	}
	w.chain.accounts[w.swap.State] = &onchain.Account{Owner: w.pool.Profile.ProgramID, Lamports: testLamports + 2_011_440, Data: s.Bytes()}
}

// putTokenAccount puts a token account on the chain.
func (w *world) putTokenAccount(at, owner, mint solana.PublicKey, amount uint64, frozen bool) {
	data := make([]byte, shieldpool.TokenAccountLength)
	copy(data, mint[:])
	copy(data[32:], owner[:])
	binary.LittleEndian.PutUint64(data[64:], amount)
	data[108] = 1
	if frozen {
		data[108] = 2
	}
	if mint.Equals(solana.WrappedSol) {
		data[109] = 1
	}
	w.chain.accounts[at] = &onchain.Account{Owner: solana.TokenProgramID, Lamports: 1_488_440, Data: data}
}

// createTokenAccounts puts all three token accounts on the chain, without tokens.
func (w *world) createTokenAccounts() {
	w.putTokenAccount(w.swap.WSOL, w.swap.State, solana.WrappedSol, 0, false)
	w.putTokenAccount(w.swap.Output, w.swap.State, w.swap.Terms.OutputMint, 0, false)
	w.putTokenAccount(w.swap.Terms.RecipientATA, w.wallet, w.swap.Terms.OutputMint, 0, false)
}

// putTable puts a lookup table on the chain.
func (w *world) putTable(at solana.PublicKey, addresses ...solana.PublicKey) {
	data := make([]byte, 56, 56+32*len(addresses))
	data[0] = 1
	binary.LittleEndian.PutUint64(data[4:], ^uint64(0))
	for _, a := range addresses {
		data = append(data, a[:]...)
	}
	w.chain.accounts[at] = &onchain.Account{Owner: solana.AddressLookupTableProgramID, Data: data}
}

// instructions returns what an honest router answers: its program swaps the lamports in the
// user's account for at least the quote's threshold, which is at the end of the data.
func (w *world) instructions(user solana.PublicKey, q *Quote) *Instructions {
	return &Instructions{
		Program: key(7),
		Accounts: []solana.AccountMeta{
			{PublicKey: solana.TokenProgramID}, {PublicKey: user, IsSigner: true},
			{PublicKey: w.swap.WSOL, IsWritable: true}, {PublicKey: w.swap.Output, IsWritable: true},
			{PublicKey: key(8, 1), IsWritable: true}, {PublicKey: key(8, 2), IsWritable: true}, {PublicKey: key(8, 3)},
			{PublicKey: solana.SystemProgramID},
		},
		Data: binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64([]byte{0xe5}, q.InAmount), q.Threshold),
	}
}

// instruction is one instruction of a transaction, with its accounts as the network sees them.
type instruction struct {
	program  solana.PublicKey
	accounts []*solana.AccountMeta
	data     []byte
}

// decode builds a draft's transaction, decodes it from its bytes and checks what holds
// for every transaction: version 0, only the payer's signature, and a size that the
// network accepts. It returns the instructions without compute-budget instructions.
func (w *world) decode(d *txmgr.Draft) []instruction {
	w.t.Helper()
	tx, err := d.Build(w.payer, shieldpool.Compute{Limit: 300_000, Price: 1}, solana.Hash{1})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.decodeTransaction(tx)
}

func (w *world) decodeTransaction(built *solana.Transaction) []instruction {
	w.t.Helper()
	raw, err := built.MarshalBinary()
	if err != nil {
		w.t.Fatal(err)
	}
	if len(raw) > shieldpool.MaxTransactionSize {
		w.t.Fatalf("transaction has %d bytes, want at most %d", len(raw), shieldpool.MaxTransactionSize)
	}
	tx, err := solana.TransactionFromBytes(raw)
	if err != nil {
		w.t.Fatal(err)
	}
	m := tx.Message
	if m.GetVersion() != solana.MessageVersionV0 || m.Header.NumRequiredSignatures != 1 || m.AccountKeys[0] != w.payer || m.RecentBlockhash != (solana.Hash{1}) {
		w.t.Fatal("transaction is not v0, or has other signers than the payer, or another blockhash")
	}
	writable, readonly := solana.PublicKeySlice{}, solana.PublicKeySlice{}
	for _, l := range m.AddressTableLookups {
		table, _, err := shieldpool.ParseLookupTable(l.AccountKey, w.chain.accounts[l.AccountKey].Data)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, i := range l.WritableIndexes {
			writable = append(writable, table.Addresses[i])
		}
		for _, i := range l.ReadonlyIndexes {
			readonly = append(readonly, table.Addresses[i])
		}
	}
	all := slices.Concat(m.AccountKeys, writable, readonly)
	static := len(m.AccountKeys)
	meta := func(i uint16) *solana.AccountMeta {
		at := int(i)
		write := at < 1 || at < static-int(m.Header.NumReadonlyUnsignedAccounts) || at >= static && at < static+len(writable)
		return &solana.AccountMeta{PublicKey: all[at], IsSigner: at == 0, IsWritable: write}
	}
	var out []instruction
	for _, ix := range m.Instructions {
		decoded := instruction{program: all[ix.ProgramIDIndex], data: ix.Data}
		for _, a := range ix.Accounts {
			decoded.accounts = append(decoded.accounts, meta(a))
		}
		if decoded.program != solana.ComputeBudget {
			out = append(out, decoded)
		}
	}
	return out
}

func (w *world) next() (Order, error) {
	w.t.Helper()
	return w.planner.Next(w.t.Context(), w.submission, w.tries, testCreated+5)
}
