package rpc

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/gagliardetto/solana-go"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

var (
	keyA, keyB = solana.PublicKey{1}, solana.PublicKey{2}
	sigA, sigB = solana.Signature{1}, solana.Signature{2}
	hashA      = solana.Hash{3}
)

// TestRequestsAndResults checks the request of each method, in Agave's format, and the result that is
// decoded from Agave's answer.
func TestRequestsAndResults(t *testing.T) {
	t.Parallel()
	type slotted struct { // the results of several methods
		Value any
		Slot  uint64
	}
	tests := map[string]struct {
		do         func(context.Context, *Client) (any, error)
		answer     string
		wantMethod string
		wantParams string
		want       any
	}{
		"accounts, one of which does not exist": {
			do: func(ctx context.Context, c *Client) (any, error) {
				v, slot, err := c.Accounts(ctx, []solana.PublicKey{keyA, keyB}, onchain.Finalized, 8)
				return slotted{v, slot}, err
			},
			answer:     fmt.Sprintf(`{"context":{"apiVersion":"2.3.0","slot":9},"value":[{"data":["AQID","base64"],"executable":false,"lamports":5,"owner":%q,"rentEpoch":18446744073709551615,"space":3},null]}`, keyB),
			wantMethod: "getMultipleAccounts",
			wantParams: fmt.Sprintf(`[[%q,%q],{"commitment":"finalized","encoding":"base64","minContextSlot":8}]`, keyA, keyB),
			want:       slotted{[]*onchain.Account{{Owner: keyB, Lamports: 5, Data: []byte{1, 2, 3}}, nil}, 9},
		},
		"balance": {
			do: func(ctx context.Context, c *Client) (any, error) {
				v, slot, err := c.Balance(ctx, keyA, 9)
				return slotted{v, slot}, err
			},
			answer:     `{"context":{"slot":9},"value":18446744073709551615}`,
			wantMethod: "getBalance",
			wantParams: fmt.Sprintf(`[%q,{"commitment":"confirmed","minContextSlot":9}]`, keyA),
			want:       slotted{uint64(1<<64 - 1), 9},
		},
		"latest blockhash": {
			do:         func(ctx context.Context, c *Client) (any, error) { return c.LatestBlockhash(ctx) },
			answer:     fmt.Sprintf(`{"context":{"slot":9},"value":{"blockhash":%q,"lastValidBlockHeight":159}}`, hashA),
			wantMethod: "getLatestBlockhash",
			wantParams: `[{"commitment":"confirmed"}]`,
			want:       onchain.Blockhash{Hash: hashA, Slot: 9, LastValidBlockHeight: 159},
		},
		"balances": {
			do: func(ctx context.Context, c *Client) (any, error) {
				v, slot, err := c.Balances(ctx, []solana.PublicKey{keyA, keyB})
				return slotted{v, slot}, err
			},
			answer:     fmt.Sprintf(`{"context":{"slot":9},"value":[{"data":["","base64"],"executable":false,"lamports":5,"owner":%q,"space":3},null]}`, keyB),
			wantMethod: "getMultipleAccounts",
			wantParams: fmt.Sprintf(`[[%q,%q],{"commitment":"confirmed","dataSlice":{"length":0,"offset":0},"encoding":"base64"}]`, keyA, keyB),
			want:       slotted{[]uint64{5, 0}, 9},
		},
		"the newest finalized block": {
			do: func(ctx context.Context, c *Client) (any, error) {
				h, err := c.Newest(ctx, onchain.Finalized)
				return [2]uint64{h.Slot, h.Height}, err
			},
			answer:     `{"absoluteSlot":90,"blockHeight":77,"epoch":0,"slotIndex":90,"slotsInEpoch":432000,"transactionCount":5}`,
			wantMethod: "getEpochInfo", wantParams: `[{"commitment":"finalized"}]`, want: [2]uint64{90, 77},
		},
		"slot": {
			do:         func(ctx context.Context, c *Client) (any, error) { return c.Slot(ctx, onchain.Processed) },
			answer:     `78`,
			wantMethod: "getSlot", wantParams: `[{"commitment":"processed"}]`, want: uint64(78),
		},
		"first available block": {
			do:         func(ctx context.Context, c *Client) (any, error) { return c.FirstAvailable(ctx) },
			answer:     `0`,
			wantMethod: "getFirstAvailableBlock", wantParams: ``, want: uint64(0),
		},
		"genesis hash": {
			do:         func(ctx context.Context, c *Client) (any, error) { return c.GenesisHash(ctx) },
			answer:     fmt.Sprintf(`%q`, hashA),
			wantMethod: "getGenesisHash", wantParams: ``, want: hashA,
		},
		"priority fees": {
			do: func(ctx context.Context, c *Client) (any, error) {
				return c.PriorityFees(ctx, []solana.PublicKey{keyA})
			},
			answer:     `[{"slot":4,"prioritizationFee":0},{"slot":5,"prioritizationFee":900}]`,
			wantMethod: "getRecentPrioritizationFees",
			wantParams: fmt.Sprintf(`[[%q]]`, keyA),
			want:       []uint64{0, 900},
		},
		"send with preflight and minContextSlot": {
			do:         func(ctx context.Context, c *Client) (any, error) { return nil, c.Send(ctx, []byte{1, 2, 3}, true, 44) },
			answer:     fmt.Sprintf(`%q`, sigA),
			wantMethod: "sendTransaction",
			wantParams: `["AQID",{"encoding":"base64","maxRetries":0,"minContextSlot":44,"preflightCommitment":"confirmed","skipPreflight":false}]`,
		},
		"send without preflight": {
			do:         func(ctx context.Context, c *Client) (any, error) { return nil, c.Send(ctx, []byte{1, 2, 3}, false, 0) },
			answer:     fmt.Sprintf(`%q`, sigA),
			wantMethod: "sendTransaction",
			wantParams: `["AQID",{"encoding":"base64","maxRetries":0,"preflightCommitment":"confirmed","skipPreflight":true}]`,
		},
		"simulation of a failure": {
			do:         func(ctx context.Context, c *Client) (any, error) { return c.Simulate(ctx, []byte{1, 2, 3}, true, 7) },
			answer:     `{"context":{"slot":9},"value":{"accounts":null,"err":{"InstructionError":[2,{"Custom":4128}]},"innerInstructions":null,"logs":[],"replacementBlockhash":null,"returnData":null,"unitsConsumed":123}}`,
			wantMethod: "simulateTransaction",
			wantParams: `["AQID",{"commitment":"confirmed","encoding":"base64","minContextSlot":7,"replaceRecentBlockhash":true,"sigVerify":false}]`,
			want:       onchain.Simulation{Err: &shieldpool.TransactionError{Kind: "InstructionError", Instruction: 2, Detail: "Custom", Custom: 0x1020}, UnitsConsumed: 123, Slot: 9},
		},
		"simulation of a success": {
			do:         func(ctx context.Context, c *Client) (any, error) { return c.Simulate(ctx, []byte{1}, false, 0) },
			answer:     `{"context":{"slot":9},"value":{"err":null,"loadedAccountsDataSize":713000,"logs":[],"unitsConsumed":150000}}`,
			wantMethod: "simulateTransaction",
			wantParams: `["AQ==",{"commitment":"confirmed","encoding":"base64","replaceRecentBlockhash":false,"sigVerify":false}]`,
			want:       onchain.Simulation{UnitsConsumed: 150000, LoadedData: 713000, Slot: 9},
		},
		"simulation that fails before it runs": {
			do:         func(ctx context.Context, c *Client) (any, error) { return c.Simulate(ctx, []byte{1}, false, 0) },
			answer:     `{"context":{"slot":9},"value":{"err":"AccountNotFound","logs":null}}`,
			wantMethod: "simulateTransaction",
			wantParams: `["AQ==",{"commitment":"confirmed","encoding":"base64","replaceRecentBlockhash":false,"sigVerify":false}]`,
			want:       onchain.Simulation{Err: &shieldpool.TransactionError{Kind: "AccountNotFound"}, Slot: 9},
		},
		"statuses: landed, failed, unknown": {
			do: func(ctx context.Context, c *Client) (any, error) {
				v, slot, err := c.Statuses(ctx, []solana.Signature{sigA, sigB, {9}}, true)
				return slotted{v, slot}, err
			},
			answer: `{"context":{"apiVersion":"2.3.0","slot":82},"value":[
				{"confirmationStatus":"confirmed","confirmations":10,"err":null,"slot":72,"status":{"Ok":null}},
				{"confirmationStatus":"finalized","confirmations":null,"err":{"InstructionError":[2,"UninitializedAccount"]},"slot":48,"status":{"Err":{}}},
				null]}`,
			wantMethod: "getSignatureStatuses",
			wantParams: fmt.Sprintf(`[[%q,%q,%q],{"searchTransactionHistory":true}]`, sigA, sigB, solana.Signature{9}),
			want: slotted{[]*onchain.Status{
				{Slot: 72, Confirmation: onchain.Confirmed},
				{Slot: 48, Confirmation: onchain.Finalized, Err: &shieldpool.TransactionError{Kind: "InstructionError", Instruction: 2, Detail: "UninitializedAccount"}},
				nil,
			}, 82},
		},
		"signatures of an address, a page": {
			do: func(ctx context.Context, c *Client) (any, error) {
				return c.SignaturesFor(ctx, keyA, onchain.Finalized, sigA, sigB, 2)
			},
			answer: fmt.Sprintf(`[{"blockTime":null,"confirmationStatus":"finalized","err":null,"memo":null,"signature":%q,"slot":114},
				{"blockTime":1,"confirmationStatus":null,"err":{"InstructionError":[0,{"Custom":1}]},"memo":null,"signature":%q,"slot":113}]`, sigA, sigB),
			wantMethod: "getSignaturesForAddress",
			wantParams: fmt.Sprintf(`[%q,{"before":%q,"commitment":"finalized","limit":2,"until":%q}]`, keyA, sigA, sigB),
			want:       []onchain.SignatureInfo{{Signature: sigA, Slot: 114, Confirmation: onchain.Finalized}, {Signature: sigB, Slot: 113, Failed: true}},
		},
		"signatures of an address, from the newest": {
			do: func(ctx context.Context, c *Client) (any, error) {
				return c.SignaturesFor(ctx, keyA, onchain.Confirmed, solana.Signature{}, solana.Signature{}, 0)
			},
			answer:     `[]`,
			wantMethod: "getSignaturesForAddress",
			wantParams: fmt.Sprintf(`[%q,{"commitment":"confirmed"}]`, keyA),
			want:       []onchain.SignatureInfo{},
		},
		"blocks": {
			do:         func(ctx context.Context, c *Client) (any, error) { return c.Blocks(ctx, 5, 8) },
			answer:     `[5,8]`,
			wantMethod: "getBlocks", wantParams: `[5,8,{"commitment":"confirmed"}]`, want: []uint64{5, 8},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, result(test.answer))
			got, err := test.do(t.Context(), newClient(t, Options{URL: n.URL}))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("result differs (-want +got):\n%s", diff)
			}
			_, method, params := n.received()
			if method != test.wantMethod || string(params) != test.wantParams {
				t.Errorf("the request is %s %s, want %s %s", method, params, test.wantMethod, test.wantParams)
			}
		})
	}
}

// A lax decoder would read these answers as zero, as a missing account or as success.
func TestIncompleteAnswersAreErrors(t *testing.T) {
	t.Parallel()
	accounts := func(ctx context.Context, c *Client) error {
		_, _, err := c.Accounts(ctx, []solana.PublicKey{keyA}, onchain.Confirmed, 0)
		return err
	}
	statuses := func(ctx context.Context, c *Client) error {
		_, _, err := c.Statuses(ctx, []solana.Signature{sigA}, false)
		return err
	}
	blockhash := func(ctx context.Context, c *Client) error { _, err := c.LatestBlockhash(ctx); return err }
	simulate := func(ctx context.Context, c *Client) error { _, err := c.Simulate(ctx, nil, false, 0); return err }
	fees := func(ctx context.Context, c *Client) error { _, err := c.PriorityFees(ctx, nil); return err }
	history := func(ctx context.Context, c *Client) error {
		_, err := c.SignaturesFor(ctx, keyA, onchain.Confirmed, sigA, sigB, 1)
		return err
	}
	finalized := func(ctx context.Context, c *Client) error { _, err := c.Newest(ctx, onchain.Finalized); return err }
	genesis := func(ctx context.Context, c *Client) error { _, err := c.GenesisHash(ctx); return err }
	owner := fmt.Sprintf(`"owner":%q`, keyA)
	tests := map[string]struct {
		do     func(context.Context, *Client) error
		answer string
	}{
		"fewer accounts than asked for":          {accounts, `{"context":{"slot":1},"value":[]}`},
		"more accounts than asked for":           {accounts, `{"context":{"slot":1},"value":[null,null]}`},
		"an account without lamports":            {accounts, `{"context":{"slot":1},"value":[{"data":["","base64"],"executable":false,` + owner + `}]}`},
		"an account without owner":               {accounts, `{"context":{"slot":1},"value":[{"data":["","base64"],"executable":false,"lamports":1}]}`},
		"an account without data":                {accounts, `{"context":{"slot":1},"value":[{"executable":false,"lamports":1,` + owner + `}]}`},
		"an account without executable":          {accounts, `{"context":{"slot":1},"value":[{"data":["","base64"],"lamports":1,` + owner + `}]}`},
		"a genesis hash of zeros":                {genesis, fmt.Sprintf(`%q`, solana.Hash{})},
		"an account in another encoding":         {accounts, `{"context":{"slot":1},"value":[{"data":["","base64+zstd"],"executable":false,"lamports":1,` + owner + `}]}`},
		"an account whose data is not base64":    {accounts, `{"context":{"slot":1},"value":[{"data":["?","base64"],"executable":false,"lamports":1,` + owner + `}]}`},
		"fewer statuses than asked for":          {statuses, `{"context":{"slot":1},"value":[]}`},
		"a status without slot":                  {statuses, `{"context":{"slot":1},"value":[{"confirmationStatus":"confirmed","err":null}]}`},
		"a status without confirmation":          {statuses, `{"context":{"slot":1},"value":[{"slot":1,"err":null}]}`},
		"a status with an unknown confirmation":  {statuses, `{"context":{"slot":1},"value":[{"slot":1,"confirmationStatus":"max","err":null}]}`},
		"a status whose error is malformed":      {statuses, `{"context":{"slot":1},"value":[{"slot":1,"confirmationStatus":"confirmed","err":[1]}]}`},
		"a blockhash without a last height":      {blockhash, fmt.Sprintf(`{"context":{"slot":1},"value":{"blockhash":%q}}`, hashA)},
		"a last height without a blockhash":      {blockhash, `{"context":{"slot":1},"value":{"lastValidBlockHeight":5}}`},
		"a simulation without consumed units":    {simulate, `{"context":{"slot":1},"value":{"err":null}}`},
		"a simulation whose error is malformed":  {simulate, `{"context":{"slot":1},"value":{"err":7,"unitsConsumed":1}}`},
		"a finalized block without height":       {finalized, `{"absoluteSlot":1}`},
		"a finalized block without slot":         {finalized, `{"blockHeight":1}`},
		"a height above the slot":                {finalized, `{"absoluteSlot":1,"blockHeight":2}`},
		"a priority fee without a value":         {fees, `[{"slot":1}]`},
		"a listed transaction without slot":      {history, fmt.Sprintf(`[{"signature":%q}]`, sigA)},
		"a listed transaction without signature": {history, `[{"slot":1}]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := test.do(t.Context(), newClient(t, Options{URL: newNode(t, result(test.answer)).URL}))
			checkError(t, err, onchain.KindBadResponse, 0, nil)
		})
	}
}

func TestLimitsAreCheckedBeforeTheCall(t *testing.T) {
	t.Parallel()
	n := newNode(t, result(`null`))
	c := newClient(t, Options{URL: n.URL})
	_, _, errAccounts := c.Accounts(t.Context(), make([]solana.PublicKey, MaxAccounts+1), onchain.Confirmed, 0)
	_, _, errStatuses := c.Statuses(t.Context(), make([]solana.Signature, MaxStatuses+1), false)
	for _, err := range []error{errAccounts, errStatuses} {
		if err == nil || errors.Is(err, onchain.ErrUnavailable) {
			t.Errorf("error is %v, want one that is not ErrUnavailable", err)
		}
	}
	if calls, _, _ := n.received(); calls != 0 {
		t.Errorf("%d calls, want none", calls)
	}
}

func FuzzDecodeBlock(f *testing.F) {
	tx, err := testTransaction()
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(blockJSON(tx)))
	f.Add([]byte(`{"blockhash":"11111111111111111111111111111112","parentSlot":1,"transactions":[]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := &blockReader{account: treeKey[:], base58: []byte(treeKey.String())}
		a, err := readAnswer(jsontext.NewDecoder(strings.NewReader(`{"result":`+string(raw)+`}`), lenient), r.decode)
		if err != nil || a.resultErr != nil {
			return
		}
		// A plain decoder finds the same transactions of the tree.
		var plain struct {
			Transactions []wireTransaction `json:"transactions"`
		}
		if jsonv2.Unmarshal(raw, &plain) != nil {
			return // for example for a duplicate name
		}
		appendIfNamed := func(signatures []solana.Signature, tx onchain.BlockTransaction) []solana.Signature {
			if slices.ContainsFunc(tx.Instructions, func(ix onchain.Instruction) bool { return slices.Contains(ix.Accounts, treeKey) }) {
				signatures = append(signatures, tx.Signature)
			}
			return signatures
		}
		var want, got []solana.Signature
		for i := range plain.Transactions {
			if tx, err := plain.Transactions[i].resolve(); err == nil {
				want = appendIfNamed(want, tx.BlockTransaction)
			}
		}
		for _, tx := range r.Transactions {
			got = appendIfNamed(got, tx)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("transactions of the tree differ (-want +got):\n%s", diff)
		}
	})
}

// blockJSON returns a block with one successful transaction, as Agave encodes it.
func blockJSON(tx []byte) string {
	return fmt.Sprintf(`{"blockhash":%q,"previousBlockhash":%q,"parentSlot":6,"blockHeight":5,"blockTime":1,"transactions":[
		{"transaction":[%q,"base64"],"version":"legacy","meta":{"err":null,"innerInstructions":[],"loadedAddresses":{"readonly":[],"writable":[]}}}]}`,
		hashA, solana.Hash{2}, base64.StdEncoding.EncodeToString(tx))
}
