package txmgr

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestALimitOfLoadedDataHasAMarginAndIsRoundedToPages(t *testing.T) {
	t.Parallel()
	const page, margin = 32 << 10, 64 * 256
	tests := map[string]struct {
		loaded uint64
		want   uint32
	}{
		"the endpoint does not say":            {0, maxLoadedData},
		"an account alone":                     {64, page},
		"data and margin are whole pages":      {3*page - margin, 3 * page},
		"one byte more takes another page":     {3*page - margin + 1, 4 * page},
		"the margin would exceed the maximum":  {maxLoadedData - 1, maxLoadedData},
		"more than a transaction may load":     {1 << 40, maxLoadedData},
		"a transaction with a program of 1 MB": {1_000_000, 32 * page},
	}
	for name, test := range tests {
		limits := newComputeLimits()
		if got := limits.observeLoadedData("transfer", test.loaded); got != test.want {
			t.Errorf("%s: %d bytes give the limit %d, want %d", name, test.loaded, got, test.want)
		}
		limits.observeLoadedData("withdrawal", 2_000_000)
		if got := limits.observeLoadedData("transfer", test.loaded/2+1); got > test.want || test.loaded > 0 && got != test.want {
			t.Errorf("%s: after a smaller transaction the limit is %d, want it still %d", name, got, test.want)
		}
	}
}

// recordingChain simulates everything as a success, and keeps the last simulated bytes.
type recordingChain struct {
	fixedSimulation
	loaded uint64
	raw    []byte
}

func (c *recordingChain) Simulate(_ context.Context, raw []byte, _ bool, _ uint64) (onchain.Simulation, error) {
	c.raw = raw
	return onchain.Simulation{UnitsConsumed: 1000, LoadedData: c.loaded, Slot: 1}, nil
}

// TestATransactionOfVersion1GetsBothLimits simulates with both limits at most, and signs with
// what was learned; an exceeded limit of loaded data is raised, that of compute units is not.
func TestATransactionOfVersion1GetsBothLimits(t *testing.T) {
	t.Parallel()
	chain := &recordingChain{loaded: 100_000}
	payer := &fakePayer{key: solana.NewWallet().PrivateKey}
	m := &Manager{
		Options: Options{Chain: chain, Payers: payer, Class: transient, Observer: noObserver{}, Now: time.Now}, compute: newComputeLimits(),
	}
	j := &Job{Kind: shieldpool.KindWithdrawal}
	prepared := func() *transaction {
		d := &Draft{Purpose: PurposeTransact, Format: shieldpool.V1, Build: memo}
		return &transaction{j: j, draft: d, payer: payer, compute: shieldpool.Compute{Format: d.Format, Price: 1}}
	}
	limits := func() (units, loaded uint32) {
		tx := prepared()
		if failure, err := m.simulate(t.Context(), tx, 0); failure != nil || err != nil {
			t.Fatal(failure, err)
		}
		return tx.compute.Limit, tx.compute.LoadedData
	}
	units, loaded := limits()
	if units != 40_000 || loaded != 131_072 {
		t.Errorf("the limits are %d units and %d bytes, want 40000 and four pages", units, loaded)
	}
	simulated, err := solana.TransactionFromBytes(chain.raw)
	if err != nil {
		t.Fatal(err)
	}
	if c := simulated.Message.TransactionConfig; *c.ComputeUnitLimit != maxComputeUnits || *c.LoadedAccountsDataSizeLimit != maxLoadedData {
		t.Errorf("the simulation had the limits %d and %d, want the most", *c.ComputeUnitLimit, *c.LoadedAccountsDataSizeLimit)
	}

	exceeded := &shieldpool.TransactionError{Kind: shieldpool.MaxLoadedDataExceeded}
	m.reportFailure(j, &Attempt{Purpose: PurposeTransact}, shieldpool.ClassRaiseCompute, exceeded)
	if u, l := limits(); u != units || l != loaded+4<<20 {
		t.Errorf("after an exceeded limit of loaded data the limits are %d and %d, want %d and 4 MiB more", u, l, units)
	}
	m.reportFailure(j, &Attempt{Purpose: PurposeTransact}, shieldpool.ClassRaiseCompute, &shieldpool.TransactionError{Kind: "InstructionError", Detail: "ComputationalBudgetExceeded"})
	if u, l := limits(); u <= units || l != loaded+4<<20 {
		t.Errorf("after an exceeded limit of units the limits are %d and %d, want more units and as many bytes", u, l)
	}
}

// TestALimitLearnedFromOneRouteIsEnoughForAnother executes swaps over a narrow, a wide and a narrow
// route.
func TestALimitLearnedFromOneRouteIsEnoughForAnother(t *testing.T) {
	t.Parallel()
	chain := &recordingChain{}
	payer := &fakePayer{key: solana.NewWallet().PrivateKey}
	m := &Manager{
		Options: Options{Chain: chain, Payers: payer, Class: transient, Observer: noObserver{}, Now: time.Now}, compute: newComputeLimits(),
	}
	for _, loaded := range []uint64{100_000, 12_000_000, 300_000} {
		chain.loaded = loaded
		d := &Draft{Purpose: PurposeExecute, Format: shieldpool.V1, Build: memo}
		tx := &transaction{j: &Job{Kind: shieldpool.KindSwap}, draft: d, payer: payer, compute: shieldpool.Compute{Format: d.Format}}
		if failure, err := m.simulate(t.Context(), tx, 0); failure != nil || err != nil {
			t.Fatal(failure, err)
		}
		if least := uint32(loaded + loadedDataRule().margin); tx.compute.LoadedData < least {
			t.Errorf("an execution that loads %d bytes may load %d, want at least %d", loaded, tx.compute.LoadedData, least)
		}
	}
}

// TestFailuresAreClassifiedByTheFormatOfTheAttempt gives the classifier the format of a
// transaction that failed in a simulation, of one that failed on the chain, and of one that
// preflight refused.
func TestFailuresAreClassifiedByTheFormatOfTheAttempt(t *testing.T) {
	t.Parallel()
	payer := &fakePayer{key: solana.NewWallet().PrivateKey}
	fails := &shieldpool.TransactionError{Kind: "AccountInUse"}
	for _, format := range []shieldpool.Format{shieldpool.V0, shieldpool.V1} {
		var got []shieldpool.Format
		m := &Manager{Options: Options{
			Chain: refusingChain{fixedSimulation{fails: fails}, fails}, Store: &deadAttemptStore{}, Payers: payer, Observer: noObserver{},
			Log: slog.New(slog.DiscardHandler), Now: time.Now,
			Class: func(_ Purpose, f shieldpool.Format, _ *shieldpool.TransactionError) shieldpool.Class {
				got = append(got, f)
				return shieldpool.ClassTransient
			},
		}, compute: newComputeLimits()}
		if _, _, err := m.simulateWith(t.Context(), &Draft{Purpose: PurposeTransact, Format: format, Build: memo}, shieldpool.Tip{}, payer.PublicKey(), 0); err != nil {
			t.Fatal(err)
		}
		tx, err := memo(payer.PublicKey(), shieldpool.Compute{Format: format, Limit: 1, LoadedData: 1}, solana.Hash{})
		if err != nil {
			t.Fatal(err)
		}
		tx.Signatures = make([]solana.Signature, 1)
		a := Attempt{Purpose: PurposeTransact}
		if a.Raw, err = tx.MarshalBinary(); err != nil {
			t.Fatal(err)
		}
		j := &Job{Row: emptyRow{}, Live: []Attempt{a}}
		m.send(t.Context(), j, &j.Live[0])
		if _, err := m.applyFates(t.Context(), j, &onchain.SearchResult{
			Statuses: []*onchain.Status{{Slot: 20, Confirmation: onchain.Finalized, Err: fails}},
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]shieldpool.Format{format, format, format}, got); diff != "" {
			t.Errorf("formats of the failures (-want +got)\n%s", diff)
		}
	}
}

// refusingChain refuses every transaction that is sent.
type refusingChain struct {
	fixedSimulation
	err *shieldpool.TransactionError
}

func (c refusingChain) Send(context.Context, []byte, onchain.Sending, uint64) error {
	return &onchain.SendError{Err: c.err}
}

// emptyRow is a row that has not landed.
type emptyRow struct{}

func (emptyRow) RequestID() uuid.UUID               { return uuid.UUID{} }
func (emptyRow) Landed() (solana.Signature, uint64) { return solana.Signature{}, 0 }
