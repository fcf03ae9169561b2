package chain

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// landed returns a transaction as getTransaction does; meta has the fields that are not empty.
func landed(raw []byte, meta string) string {
	if !strings.Contains(meta, "innerInstructions") {
		meta += `,"innerInstructions":[]`
	}
	return fmt.Sprintf(`{"slot":7,"blockTime":1700000000,"version":0,"transaction":[%q,"base64"],"meta":{%s}}`, base64.StdEncoding.EncodeToString(raw), meta)
}

// balances returns meta of n accounts whose balances do not change.
func balances(n int) string {
	list := strings.TrimSuffix(strings.Repeat("9,", n), ",")
	return fmt.Sprintf(`"err":null,"fee":5000,"preBalances":[%s],"postBalances":[%s]`, list, list)
}

func transact(t *testing.T, pool *shieldpool.Pool, nullifier byte, options ...solana.TransactionOption) []byte {
	t.Helper()
	in := &shieldpool.PublicInputs{PublicAmount: -9, MintAddress: pool.Mint.Field, Nullifiers: [2][32]byte{{31: nullifier}, {31: nullifier + 1}}}
	ix, err := pool.Instruction(payerKey, &shieldpool.Call{Proof: make([]byte, shieldpool.ProofLength), Inputs: in, Destination: shieldpool.Destination{Recipient: keyB}})
	if err != nil {
		t.Fatal(err)
	}
	return signedBy(t, sigA, ix, options...)
}

func signedBy(t *testing.T, signature solana.Signature, ix solana.Instruction, options ...solana.TransactionOption) []byte {
	t.Helper()
	tx, err := solana.NewTransaction([]solana.Instruction{ix}, hashA, append(options, solana.TransactionPayer(payerKey))...)
	if err != nil {
		t.Fatal(err)
	}
	tx.Signatures = []solana.Signature{signature}
	raw, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func accountsOf(t *testing.T, raw []byte) int {
	t.Helper()
	tx, err := solana.TransactionFromBytes(raw)
	if err != nil {
		t.Fatal(err)
	}
	return len(tx.Message.AccountKeys) + tx.Message.NumLookups()
}

// TestCreationSlotNeedsTwoEndpoints: two endpoints have to report the slot of a
// creation, because a swap's timeout depends on it.
func TestCreationSlotNeedsTwoEndpoints(t *testing.T) {
	t.Parallel()
	pool := testPool(t)
	maker := transact(t, pool, 5)
	for name, slotOfB := range map[string]uint64{"both report the slot": 7, "one reports another slot": 1 << 40} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNetwork("a", "b")
			for host, slot := range map[string]uint64{"a": 7, "b": slotOfB} {
				n[host].set("getTransaction", resultReply(strings.Replace(landed(maker, balances(accountsOf(t, maker))), `"slot":7`, fmt.Sprintf(`"slot":%d`, slot), 1)))
				n[host].page = func(params string) reply {
					if strings.Contains(params, `"before"`) {
						return resultReply("[]")
					}
					return resultReply(fmt.Sprintf(`[{"signature":%q,"slot":%d,"err":null,"confirmationStatus":"finalized"}]`, sigA, slot))
				}
			}
			e, _ := newEndpoints(t, n, endpointsNamed("a", "b"), func(o *EndpointsOptions) { o.Timeout = time.Second })
			got, err := e.FindCreation(t.Context(), pool, [32]byte{31: 5})
			if slotOfB == 7 {
				if err != nil || got == nil || got.Slot != 7 {
					t.Errorf("creation is %+v, error %v, want one in slot 7", got, err)
				}
				return
			}
			checkError(t, err, onchain.KindUnverified, 0, nil)
		})
	}
}

func TestFindCreation(t *testing.T) {
	t.Parallel()
	pool := testPool(t)
	nullifier := [32]byte{31: 5}
	address, _, err := pool.Nullifier(nullifier)
	if err != nil {
		t.Fatal(err)
	}
	maker := transact(t, pool, 5)
	inTable := transact(t, pool, 5, solana.TransactionAddressTables(map[solana.PublicKey]solana.PublicKeySlice{table: {pool.MerkleTree, pool.Address}}))
	loaded := fmt.Sprintf(`,"loadedAddresses":{"writable":[%q,%q],"readonly":[]}`, pool.MerkleTree, pool.Address)
	gift := signedBy(t, sigA, solana.NewInstruction(solana.SystemProgramID, solana.AccountMetaSlice{solana.Meta(payerKey).SIGNER().WRITE(), solana.Meta(address).WRITE()}, []byte{2}))
	// imitation is a call of another program with the same data. other is a call of the pool
	// with the address that spends other notes.
	imitation := signedBy(t, sigA, solana.NewInstruction(router, solana.AccountMetaSlice{solana.Meta(address).WRITE()}, instructionData(t, maker)))
	other := transact(t, pool, 7)
	// A router calls the pool: the call is an inner instruction.
	routed := signedBy(t, sigA, solana.NewInstruction(router, solana.AccountMetaSlice{
		solana.Meta(payerKey).SIGNER().WRITE(), solana.Meta(address).WRITE(), solana.Meta(pool.Profile.ProgramID),
	}, []byte{1}))
	inner := fmt.Sprintf(`,"innerInstructions":[{"index":0,"instructions":[{"programIdIndex":%d,"accounts":[%d],"data":%q}]}]`,
		indexIn(t, routed, pool.Profile.ProgramID), indexIn(t, routed, address), solana.Base58(instructionData(t, maker)).String())
	unknownFormat := signedBy(t, sigA, solana.NewInstruction(pool.Profile.ProgramID, solana.AccountMetaSlice{solana.Meta(address).WRITE()}, append(instructionData(t, maker), "an unknown format"...)))

	found := &onchain.Creation{Signature: sigA, Slot: 7, Confirmation: onchain.Finalized, FeePayer: payerKey}
	tests := map[string]struct {
		transaction string
		want        bool
		wantKind    string
	}{
		"a call of the pool":                     {transaction: landed(maker, balances(accountsOf(t, maker))), want: true},
		"with addresses from a lookup table":     {transaction: landed(inTable, balances(accountsOf(t, inTable))+loaded), want: true},
		"called by another program":              {transaction: landed(routed, balances(accountsOf(t, routed))+inner), want: true},
		"with notes in an unknown format":        {transaction: landed(unknownFormat, balances(accountsOf(t, unknownFormat))), want: true},
		"a transfer to the address":              {transaction: landed(gift, balances(accountsOf(t, gift)))},
		"a call of another program":              {transaction: landed(imitation, balances(accountsOf(t, imitation)))},
		"a call that spends other notes":         {transaction: landed(other, balances(accountsOf(t, other)))},
		"a failed call":                          {transaction: landed(maker, strings.Replace(balances(accountsOf(t, maker)), `"err":null`, `"err":"AccountInUse"`, 1))},
		"a listed transaction that is not found": {transaction: "null", wantKind: onchain.KindNotYet},
		"another transaction than requested":     {transaction: landed(signedBy(t, sigB, solana.NewInstruction(router, nil, nil)), balances(2)), wantKind: onchain.KindBadResponse},
		"a transaction without balances":         {transaction: landed(maker, `"err":null,"fee":5000`), wantKind: onchain.KindBadResponse},
		"a transaction without a fee":            {transaction: landed(maker, strings.Replace(balances(accountsOf(t, maker)), `"fee":5000,`, "", 1)), wantKind: onchain.KindBadResponse},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNetwork("a")
			n["a"].set("getTransaction", resultReply(test.transaction))
			n["a"].page = func(params string) reply {
				if strings.Contains(params, fmt.Sprintf(`"before":%q`, sigA)) {
					return resultReply("[]")
				}
				if !strings.Contains(params, `"before"`) {
					// The newest page has only unrelated transactions.
					return resultReply(fmt.Sprintf(`[{"signature":%q,"slot":10,"err":"AccountInUse"}]`, sigC))
				}
				return resultReply(fmt.Sprintf(`[{"signature":%q,"slot":9,"err":"AccountInUse"},{"signature":%q,"slot":7,"err":null,"confirmationStatus":"finalized"}]`, sigB, sigA))
			}
			e, _ := newEndpoints(t, n, endpointsNamed("a"), func(o *EndpointsOptions) { o.Timeout = time.Second })
			got, err := e.FindCreation(t.Context(), pool, nullifier)
			if test.wantKind != "" {
				checkError(t, err, test.wantKind, 0, nil)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if (got != nil) != test.want {
				t.Fatalf("got creation %+v, want a creation: %v", got, test.want)
			}
			if got == nil {
				return
			}
			if call := got.Call; call == nil || call.Inputs.Nullifiers[0] != nullifier {
				t.Errorf("call is %+v, want the one that spends the nullifier", call)
			}
			got.Call = nil
			if diff := cmp.Diff(found, got); diff != "" {
				t.Errorf("creation differs (-want +got):\n%s", diff)
			}
		})
	}
	n := newNetwork("a")
	e, _ := newEndpoints(t, n, endpointsNamed("a"), nil)
	if _, err := e.FindCreation(t.Context(), pool, [32]byte{}); err == nil {
		t.Error("finding the creation of the zero nullifier returned no error")
	}
}

func instructionData(t *testing.T, raw []byte) []byte {
	t.Helper()
	tx, err := solana.TransactionFromBytes(raw)
	if err != nil {
		t.Fatal(err)
	}
	return tx.Message.Instructions[0].Data
}

// TestFindCreationReadsOldestTransactionFirst: the oldest transaction of the address is read
// first, because strangers learn the address only when it lands.
func TestFindCreationReadsOldestTransactionFirst(t *testing.T) {
	t.Parallel()
	pool := testPool(t)
	maker := transact(t, pool, 5)
	n := newNetwork("a")
	n["a"].set("getTransaction", resultReply(landed(maker, balances(accountsOf(t, maker)))))
	n["a"].page = func(params string) reply {
		if strings.Contains(params, `"before"`) {
			return resultReply("[]")
		}
		return resultReply(fmt.Sprintf(`[{"signature":%q,"slot":10,"err":null},{"signature":%q,"slot":9,"err":null},{"signature":%q,"slot":7,"err":null,"confirmationStatus":"finalized"}]`, sigC, sigB, sigA))
	}
	e, _ := newEndpoints(t, n, endpointsNamed("a"), nil)
	got, err := e.FindCreation(t.Context(), pool, [32]byte{31: 5})
	if err != nil || got == nil || got.Signature != sigA {
		t.Fatalf("creation is %+v (%v), want the oldest transaction", got, err)
	}
	if reads := n["a"].count("getTransaction"); reads != 1 {
		t.Errorf("%d transactions are read, want only the oldest", reads)
	}
}
