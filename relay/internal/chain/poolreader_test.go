package chain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/refusal"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// accounts is an AccountReader whose accounts a test sets.
type accounts struct {
	mu        sync.Mutex
	stored    map[solana.PublicKey]*onchain.Account
	slot      uint64
	err       error
	processed bool // reads are answered at the processed commitment, and not at the confirmed one
	reads     int
	delay     time.Duration
	asked     [][]solana.PublicKey
	notBefore []uint64
}

// Owners implements AccountReader. What it returns has no data.
func (a *accounts) Owners(ctx context.Context, keys []solana.PublicKey, commitment onchain.Commitment, minContextSlot uint64) ([]*onchain.Account, uint64, error) {
	all, slot, err := a.Accounts(ctx, keys, commitment, minContextSlot)
	for i := range all {
		if all[i] != nil {
			bare := *all[i]
			bare.Data = nil
			all[i] = &bare
		}
	}
	return all, slot, err
}

func (a *accounts) Accounts(ctx context.Context, keys []solana.PublicKey, commitment onchain.Commitment, minContextSlot uint64) ([]*onchain.Account, uint64, error) {
	if a.processed != (commitment == onchain.Processed) || !a.processed && commitment != onchain.Confirmed {
		return nil, 0, fmt.Errorf("read at the commitment %s", commitment)
	}
	// Return the state at the start of the read.
	a.mu.Lock()
	a.reads++
	a.asked = append(a.asked, keys)
	a.notBefore = append(a.notBefore, minContextSlot)
	slot, err, out := a.slot, a.err, make([]*onchain.Account, len(keys))
	for i, k := range keys {
		out[i] = a.stored[k]
	}
	a.mu.Unlock()
	time.Sleep(a.delay) // virtual time: tests run in a synctest bubble
	if err == nil {
		err = ctx.Err()
	}
	return out, slot, err
}

func (a *accounts) set(slot uint64, key solana.PublicKey, account *onchain.Account) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.slot, a.err = slot, nil
	if a.stored == nil {
		a.stored = map[solana.PublicKey]*onchain.Account{}
	}
	a.stored[key] = account
}

func (a *accounts) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

func (a *accounts) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reads
}

func testPool(t *testing.T) *shieldpool.Pool {
	t.Helper()
	profile := shieldpool.Development()
	pool, err := profile.Pool(profile.Mints[0])
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

func owned(pool *shieldpool.Pool, data []byte) *onchain.Account {
	return &onchain.Account{Owner: pool.Profile.ProgramID, Lamports: 1, Data: data}
}

// treeOf returns a tree account with that many leaves.
func treeOf(t *testing.T, pool *shieldpool.Pool, leaves byte) *onchain.Account {
	t.Helper()
	tree := pool.Profile.NewTree(keyA)
	for i := range leaves {
		if err := tree.Append([32]byte{31: i + 1}); err != nil {
			t.Fatal(err)
		}
	}
	return owned(pool, tree.Bytes())
}

type change struct {
	NextIndex uint64
	OK        bool
}

func newPool(t *testing.T, a *accounts) (*PoolReader, *[]change) {
	t.Helper()
	changes := new([]change)
	p, err := NewPool(PoolOptions{
		Accounts: a, Pool: testPool(t), Now: time.Now, MinInterval: 200 * time.Millisecond,
		Changed: func(s onchain.Snapshot, err error) {
			if errors.Is(err, shieldpool.ErrSelfCheck) != (err != nil) || s.Checked != (err == nil) {
				t.Errorf("snapshot is checked: %v, with error %v", s.Checked, err)
			}
			*changes = append(*changes, change{s.Tree.NextIndex, err == nil})
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p, changes
}

// bubble runs a test with virtual time.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// tick lets the virtual clock move, as a real one does between two calls.
func tick() { time.Sleep(time.Nanosecond) }

func mustTree(t *testing.T, p *PoolReader, maxAge time.Duration) onchain.Snapshot {
	t.Helper()
	tick()
	s, err := p.Tree(t.Context(), maxAge)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func checkRefusal(t *testing.T, err error, want refusal.Code) refusal.Refusal {
	t.Helper()
	r, ok := refusal.As(err)
	if !ok || r.Code != want {
		t.Fatalf("error is %v, want refusal %s", err, want)
	}
	if want.HTTPStatus() == 503 && r.RetryAfter <= 0 {
		t.Errorf("refusal %s has no Retry-After", want)
	}
	return *r
}

func TestTreeIsReadAgainOnlyWhenTooOld(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &accounts{delay: 50 * time.Millisecond}
		p, changes := newPool(t, a)
		pool := p.pool
		a.set(10, pool.MerkleTree, treeOf(t, pool, 2))
		first := mustTree(t, p, time.Minute)
		if first.Tree.NextIndex != 2 || first.Slot != 10 || !first.Checked {
			t.Errorf("snapshot is at index %d, slot %d, checked %v; want 2, 10, true", first.Tree.NextIndex, first.Slot, first.Checked)
		}
		if got := time.Since(first.At); got != a.delay {
			t.Errorf("snapshot is %s old, want %s, the time since its read started", got, a.delay)
		}

		a.set(11, pool.MerkleTree, treeOf(t, pool, 4))
		time.Sleep(time.Second)
		if s := mustTree(t, p, 2*time.Second); s.Slot != 10 {
			t.Errorf("slot is %d, want 10 from the cache", s.Slot)
		}
		if s := mustTree(t, p, time.Second-time.Nanosecond); s.Slot != 11 || s.Tree.NextIndex != 4 {
			t.Errorf("slot is %d and index %d, want 11 and 4 from a new read", s.Slot, s.Tree.NextIndex)
		}
		if a.count() != 2 {
			t.Errorf("%d reads, want 2", a.count())
		}
		if diff := cmp.Diff([]change{{2, true}, {4, true}}, *changes); diff != "" {
			t.Errorf("changes differ (-want +got):\n%s", diff)
		}
	})
}

func TestMaxAgeZeroStartsANewRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &accounts{delay: time.Second}
		p, _ := newPool(t, a)
		a.set(10, p.pool.MerkleTree, treeOf(t, p.pool, 2))
		var group sync.WaitGroup
		group.Go(func() { mustTree(t, p, 0) })
		time.Sleep(a.delay / 2)
		// The tree changes while the first read is under way.
		a.set(11, p.pool.MerkleTree, treeOf(t, p.pool, 4))
		for range 20 {
			group.Go(func() {
				if s := mustTree(t, p, 0); s.Tree.NextIndex != 4 {
					t.Errorf("index is %d, want 4, because the call came after the change", s.Tree.NextIndex)
				}
			})
		}
		group.Wait()
		if a.count() != 2 {
			t.Errorf("%d reads, want 2: the later calls share one", a.count())
		}
	})
}

func TestReadsAreRateLimited(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := new(accounts)
		p, _ := newPool(t, a)
		a.set(10, p.pool.MerkleTree, treeOf(t, p.pool, 2))
		start := time.Now()
		for range 11 {
			mustTree(t, p, 0)
		}
		if took := time.Since(start).Truncate(time.Millisecond); took != 2*time.Second || a.count() != 11 {
			t.Errorf("%d reads took %s, want 11 in 2 s", a.count(), took)
		}
		a.fail(errors.New("down"))
		before := a.count()
		start = time.Now()
		for range 5 {
			tick()
			_, err := p.Tree(t.Context(), 0)
			checkRefusal(t, err, refusal.ChainUnavailable)
		}
		if took := time.Since(start).Truncate(time.Millisecond); took != time.Second || a.count()-before != 5 {
			t.Errorf("%d failing reads took %s, want 5 in 1 s: the rate limit also holds for failures", a.count()-before, took)
		}
	})
}

func TestCancelledCallerDoesNotCancelTheRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := &accounts{delay: time.Second}
		p, _ := newPool(t, a)
		a.set(10, p.pool.MerkleTree, treeOf(t, p.pool, 2))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var group sync.WaitGroup
		group.Go(func() {
			_, err := p.Tree(ctx, time.Minute)
			checkRefusal(t, err, refusal.ChainUnavailable)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error is %v, want the caller's deadline in it", err)
			}
		})
		synctest.Wait()
		group.Go(func() { mustTree(t, p, time.Minute) })
		group.Wait()
		if a.count() != 1 {
			t.Errorf("%d reads, want 1", a.count())
		}
	})
}

func TestSelfCheckRunsOncePerChange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := new(accounts)
		p, changes := newPool(t, a)
		good, bad := treeOf(t, p.pool, 2), treeOf(t, p.pool, 2)
		bad.Data[40+32+31] ^= 1 // level 1 of the frontier, which two leaves use
		for slot, account := range []*onchain.Account{good, good, bad, bad, good} {
			a.set(uint64(slot+1), p.pool.MerkleTree, account)
			s := mustTree(t, p, 0)
			if s.Checked != (account == good) || s.Slot != uint64(slot+1) {
				t.Errorf("after slot %d: snapshot is of slot %d, checked %v; want checked %v", slot+1, s.Slot, s.Checked, account == good)
			}
		}
		if diff := cmp.Diff([]change{{2, true}, {2, false}, {2, true}}, *changes); diff != "" {
			t.Errorf("changes differ (-want +got):\n%s", diff)
		}
	})
}

func TestNodeBehindDoesNotReplaceNewerTree(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := new(accounts)
		p, _ := newPool(t, a)
		a.set(10, p.pool.MerkleTree, treeOf(t, p.pool, 4))
		mustTree(t, p, 0)
		a.set(9, p.pool.MerkleTree, treeOf(t, p.pool, 2))
		if s := mustTree(t, p, 0); s.Slot != 10 || s.Tree.NextIndex != 4 || !s.Checked {
			t.Errorf("slot %d, index %d, checked %v; want the newer 10, 4, true", s.Slot, s.Tree.NextIndex, s.Checked)
		}
		a.set(8, p.pool.MerkleTree, nil)
		if s := mustTree(t, p, 0); s.Slot != 10 {
			t.Errorf("slot is %d, want 10: a node that is behind does not make the pool uninitialised", s.Slot)
		}
	})
}

func TestUnusableTreeAccount(t *testing.T) {
	t.Parallel()
	pool := testPool(t)
	good := treeOf(t, pool, 2)
	tests := map[string]struct {
		account  *onchain.Account
		err      error
		want     refusal.Code
		wantText string
	}{
		"no account":                    {want: refusal.PoolNotInitialised, wantText: "does not exist"},
		"an account of another program": {account: &onchain.Account{Owner: solana.SystemProgramID, Lamports: 1, Data: good.Data}, want: refusal.PoolNotInitialised, wantText: "not owned by the program"},
		"an account that is too short":  {account: owned(pool, good.Data[:100]), want: refusal.PoolNotInitialised, wantText: "profile development"},
		"an endpoint that is down":      {err: &onchain.Unavailable{Method: "getMultipleAccounts", Kind: onchain.KindTimeout}, want: refusal.ChainUnavailable, wantText: "later"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := new(accounts)
				p, _ := newPool(t, a)
				a.set(10, pool.MerkleTree, test.account)
				a.fail(test.err)
				_, err := p.Tree(t.Context(), 0)
				r := checkRefusal(t, err, test.want)
				if !strings.Contains(r.Message, test.wantText) {
					t.Errorf("message is %q, want %q in it", r.Message, test.wantText)
				}
				if test.err != nil && !errors.Is(err, onchain.ErrUnavailable) {
					t.Errorf("the cause is %v, want ErrUnavailable in it", r.Cause)
				}
				if test.account == nil && test.err == nil {
					for _, want := range []string{"initialise the pool", pool.MerkleTree.String(), pool.Profile.ProgramID.String()} {
						if !strings.Contains(r.Message, want) {
							t.Errorf("message is %q, want %q in it", r.Message, want)
						}
					}
				}
				// After the fix, the next read succeeds.
				a.set(11, pool.MerkleTree, good)
				if s := mustTree(t, p, 0); s.Slot != 11 {
					t.Errorf("slot is %d, want 11", s.Slot)
				}
				if test.account != nil && test.account.Owner == pool.Profile.ProgramID {
					return
				}
				// The account existed, so now the node must be wrong.
				a.set(12, pool.MerkleTree, test.account)
				a.fail(test.err)
				time.Sleep(time.Second)
				_, err = p.Tree(t.Context(), 0)
				checkRefusal(t, err, refusal.ChainUnavailable)
				if !errors.Is(err, onchain.ErrUnavailable) {
					t.Errorf("error is %v, want ErrUnavailable in it", err)
				}
			})
		})
	}
}

func TestRoot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		a := new(accounts)
		p, _ := newPool(t, a)
		a.set(10, p.pool.MerkleTree, treeOf(t, p.pool, 2))
		tree := mustTree(t, p, 0).Tree
		want := onchain.Root{Root: tree.Root, Tree: p.pool.MerkleTree, NextIndex: 2, Slot: 10}
		for _, mint := range []string{"", p.pool.Mint.Address.String()} {
			got, err := p.Root(t.Context(), mint)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("root for mint %q differs (-want +got):\n%s", mint, diff)
			}
		}
		for _, mint := range []string{keyA.String(), "canary", strings.Repeat("1", 100)} {
			_, err := p.Root(t.Context(), mint)
			r := checkRefusal(t, err, refusal.UnknownMint)
			if strings.Contains(r.Message, mint) {
				t.Errorf("message %q repeats the mint", r.Message)
			}
		}
	})
}

// A client may wait for a root that is new, but not long.
func TestRootOfASlowEndpointIsTheKnownOne(t *testing.T) {
	tests := map[string]struct {
		delay, age time.Duration
		noticed    bool
		leaves     uint64
		took       time.Duration
	}{
		"a fast endpoint":                  {40 * time.Millisecond, 300 * time.Millisecond, false, 4, 40 * time.Millisecond},
		"a slow endpoint":                  {time.Second, 300 * time.Millisecond, false, 2, 50 * time.Millisecond},
		"a slow endpoint, and an old tree": {time.Second, 500 * time.Millisecond, false, 4, time.Second},
		"a notice long after a read":       {time.Millisecond, 170 * time.Millisecond, true, 4, 31 * time.Millisecond},
		"a notice just after a read":       {time.Millisecond, 10 * time.Millisecond, true, 2, 50 * time.Millisecond},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := new(accounts)
				p, _ := newPool(t, a)
				a.set(10, p.pool.MerkleTree, treeOf(t, p.pool, 2))
				mustTree(t, p, 0)
				a.set(12, p.pool.MerkleTree, treeOf(t, p.pool, 4))
				a.delay = test.delay
				time.Sleep(test.age)
				if test.noticed {
					p.NoticeChange(0)
				}
				began := time.Now()
				got, err := p.Root(t.Context(), "")
				if took := time.Since(began); err != nil || got.NextIndex != test.leaves || took != test.took {
					t.Errorf("the root is %+v (%v) after %s, want that of %d leaves after %s", got, err, took, test.leaves, test.took)
				}
				time.Sleep(2 * time.Second) // the read goes on
			})
		})
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	pool := testPool(t)
	nullifiers := [2][32]byte{{31: 7}, {31: 8}}
	var addresses [2]solana.PublicKey
	for i := range nullifiers {
		var err error
		if addresses[i], _, err = pool.Nullifier(nullifiers[i]); err != nil {
			t.Fatal(err)
		}
	}
	recipient := solana.PublicKey{77}
	tests := map[string]struct {
		nullifiers [2][32]byte
		recipient  solana.PublicKey
		stored     map[solana.PublicKey]*onchain.Account
		want       onchain.Inspection
		wantKeys   int
	}{
		"no account exists": {
			nullifiers: nullifiers, recipient: recipient, wantKeys: 3,
			want: onchain.Inspection{Slot: 5},
		},
		"the second is spent, the recipient exists": {
			nullifiers: nullifiers, recipient: recipient, wantKeys: 3,
			stored: map[solana.PublicKey]*onchain.Account{addresses[1]: owned(pool, nil), recipient: {Owner: solana.SystemProgramID, Lamports: 42}},
			want:   onchain.Inspection{Spent: [2]bool{false, true}, RecipientLamports: 42, RecipientExists: true, RecipientOwner: solana.SystemProgramID, Slot: 5},
		},
		"a lamport on the address spends nothing": {
			nullifiers: nullifiers, wantKeys: 2,
			stored: map[solana.PublicKey]*onchain.Account{addresses[0]: {Owner: solana.SystemProgramID, Lamports: 1}},
			want:   onchain.Inspection{Slot: 5},
		},
		"a zero nullifier is not asked for": {
			nullifiers: [2][32]byte{{}, nullifiers[1]}, recipient: recipient, wantKeys: 2,
			stored: map[solana.PublicKey]*onchain.Account{addresses[1]: owned(pool, nil), recipient: {Lamports: 3}},
			want:   onchain.Inspection{Spent: [2]bool{false, true}, RecipientLamports: 3, RecipientExists: true, Slot: 5},
		},
		"no input at all": {want: onchain.Inspection{Slot: 5}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &accounts{stored: test.stored, slot: 5}
			p, _ := newPool(t, a)
			got, err := p.Inspect(t.Context(), &shieldpool.PublicInputs{Nullifiers: test.nullifiers}, test.recipient, 3)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("inspection differs (-want +got):\n%s", diff)
			}
			if len(a.asked) != 1 || len(a.asked[0]) != test.wantKeys {
				t.Errorf("asked for %v, want %d accounts in one call", a.asked, test.wantKeys)
			}
		})
	}
	t.Run("the endpoint is down", func(t *testing.T) {
		t.Parallel()
		a := &accounts{err: &onchain.Unavailable{Method: "getMultipleAccounts", Kind: onchain.KindConnection}}
		p, _ := newPool(t, a)
		_, err := p.Inspect(t.Context(), &shieldpool.PublicInputs{Nullifiers: nullifiers}, recipient, 0)
		checkRefusal(t, err, refusal.ChainUnavailable)
	})
}

func TestTokens(t *testing.T) {
	t.Parallel()
	mint, account := solana.PublicKey{78}, solana.PublicKey{79}
	stored := &onchain.Account{Owner: solana.TokenProgramID, Lamports: 5, Data: []byte{1, 2}}
	tests := map[string]struct {
		stored map[solana.PublicKey]*onchain.Account
		want   onchain.Tokens
	}{
		"neither exists":              {want: onchain.Tokens{Slot: 5}},
		"only the mint exists":        {map[solana.PublicKey]*onchain.Account{mint: stored}, onchain.Tokens{Mint: stored, Slot: 5}},
		"only the account exists":     {map[solana.PublicKey]*onchain.Account{account: stored}, onchain.Tokens{Account: stored, Slot: 5}},
		"only another account exists": {map[solana.PublicKey]*onchain.Account{{80}: stored}, onchain.Tokens{Slot: 5}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &accounts{stored: test.stored, slot: 5}
			p, _ := newPool(t, a)
			got, err := p.Tokens(t.Context(), mint, account)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("tokens differ (-want +got):\n%s", diff)
			}
			if len(a.asked) != 1 {
				t.Errorf("%d reads, want both accounts in one", len(a.asked))
			}
		})
	}
	t.Run("the endpoint is down", func(t *testing.T) {
		t.Parallel()
		a := &accounts{err: &onchain.Unavailable{Method: "getMultipleAccounts", Kind: onchain.KindConnection}}
		p, _ := newPool(t, a)
		_, err := p.Tokens(t.Context(), mint, account)
		checkRefusal(t, err, refusal.ChainUnavailable)
	})
}

func TestNewPoolRefusesInvalidOptions(t *testing.T) {
	t.Parallel()
	full := PoolOptions{Accounts: new(accounts), Pool: testPool(t), Now: time.Now}
	tests := map[string]struct{ change func(*PoolOptions) }{
		"no reader":           {func(o *PoolOptions) { o.Accounts = nil }},
		"no pool":             {func(o *PoolOptions) { o.Pool = nil }},
		"no clock":            {func(o *PoolOptions) { o.Now = nil }},
		"a negative interval": {func(o *PoolOptions) { o.MinInterval = -1 }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := full
			test.change(&o)
			if p, err := NewPool(o); err == nil || p != nil {
				t.Errorf("options with %s are accepted", name)
			}
		})
	}
	if _, err := NewPool(full); err != nil {
		t.Errorf("full options are refused: %v", err)
	}
}
