package rpc

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/onchain"
)

// blockMaker makes a block like a full one of mainnet, of random keys and data.
type blockMaker struct {
	tb           testing.TB
	random       *rand.ChaCha8
	programs     []solana.PublicKey
	computeUnits int
	transactions []string
}

const (
	votes      = 1100
	otherCalls = 900 // two of them are the pool's
	blockUnits = 50_000_000
)

// fullBlock returns the answer of getBlock for a block of 50 million compute units: votes, and
// transactions of legacy, v0 and v1 with inner instructions, logs and token balances. Two
// transactions name the tree: one among its own keys, one by a lookup table.
func fullBlock(tb testing.TB) []byte {
	tb.Helper()
	m := &blockMaker{tb: tb, random: rand.NewChaCha8([32]byte{1})}
	m.programs = m.keys(12)
	for i := range votes + otherCalls {
		switch {
		case i%20 < 11:
			m.vote()
		case i == 1015:
			m.call(1, m.keys(12), append(m.keys(1), treeKey))
		case i == 1516:
			m.call(2, append(m.keys(15), treeKey), nil)
		default:
			version := i % 3
			if version == 1 {
				m.call(version, m.keys(10), m.keys(16))
			} else {
				m.call(version, m.keys(12+6*version), nil)
			}
		}
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","result":{"blockHeight":350000000,"blockTime":1796000000,"blockhash":%q,"parentSlot":6,"previousBlockhash":%q,"transactions":[%s]},"id":1}`,
		hashA, solana.Hash{2}, strings.Join(m.transactions, ","))
}

func (m *blockMaker) bytes(n int) []byte {
	b := make([]byte, n)
	_, _ = m.random.Read(b) // it returns no error
	return b
}

func (m *blockMaker) keys(n int) []solana.PublicKey {
	out := make([]solana.PublicKey, n)
	for i := range out {
		out[i] = solana.PublicKeyFromBytes(m.bytes(32))
	}
	return out
}

func (m *blockMaker) number(below uint64) uint64 { return m.random.Uint64() % below }

func (m *blockMaker) vote() {
	const units = 2100
	voter := m.keys(1)
	vote := solana.NewInstruction(solana.VoteProgramID, solana.AccountMetaSlice{solana.Meta(voter[0]).WRITE()}, m.bytes(148))
	logs := []string{"Program " + solana.VoteProgramID.String() + " invoke [1]", "Program " + solana.VoteProgramID.String() + " success"}
	m.add(m.sign(vote), `"legacy"`, m.meta(units, 3, logs, 0, 0, nil))
}

// call adds a transaction of a version (0 stands for legacy, 1 for v0, 2 for v1) that names the
// accounts itself, and the loaded ones by a lookup table.
func (m *blockMaker) call(version int, accounts, loaded []solana.PublicKey) {
	const units = (blockUnits - 2100*votes) / otherCalls
	metas := solana.AccountMetaSlice{}
	for _, key := range append(accounts, loaded...) {
		metas = append(metas, solana.Meta(key).WRITE())
	}
	call := solana.NewInstruction(m.programs[m.number(12)], metas, m.bytes(24+int(m.number(200))))
	var raw []byte
	switch version {
	case 1:
		raw = m.sign(call, solana.TransactionAddressTables(map[solana.PublicKey]solana.PublicKeySlice{m.keys(1)[0]: loaded}))
	case 2:
		raw = m.sign(call, solana.TransactionV1Config(solana.TransactionConfig{}.WithComputeUnitLimit(2*units).WithLoadedAccountsDataSizeLimit(1<<20)))
	default:
		raw = m.sign(call)
	}
	var logs []string
	for range 3 {
		program := m.programs[m.number(12)].String()
		logs = append(logs, "Program "+program+" invoke [2]", "Program log: Instruction: Transfer",
			"Program data: "+base64.StdEncoding.EncodeToString(m.bytes(72)),
			fmt.Sprintf("Program %s consumed %d of %d compute units", program, m.number(60_000), 60_000+m.number(1_000_000)), "Program "+program+" success")
	}
	m.add(raw, []string{`"legacy"`, "0", "1"}[version], m.meta(units, len(accounts)+len(loaded)+2, logs, 6, 2, loaded))
}

func (m *blockMaker) sign(call solana.Instruction, options ...solana.TransactionOption) []byte {
	m.tb.Helper()
	tx, err := solana.NewTransaction([]solana.Instruction{call}, hashA, append(options, solana.TransactionPayer(m.keys(1)[0]))...)
	if err != nil {
		m.tb.Fatal(err)
	}
	tx.Signatures = []solana.Signature{solana.SignatureFromBytes(m.bytes(64))}
	raw, err := tx.MarshalBinary()
	if err != nil {
		m.tb.Fatal(err)
	}
	return raw
}

func (m *blockMaker) meta(units, accounts int, logs []string, inner, tokens int, loaded []solana.PublicKey) string {
	m.computeUnits += units
	balances := func() string { return m.list(accounts, func() string { return fmt.Sprint(m.number(1 << 40)) }) }
	calls := m.list(inner, func() string {
		return fmt.Sprintf(`{"accounts":[%d,%d,%d,%d],"data":%q,"programIdIndex":%d,"stackHeight":2}`, m.number(12), m.number(12), m.number(12), m.number(12), solana.Base58(m.bytes(17)).String(), m.number(12))
	})
	if inner > 0 {
		calls = `[{"index":0,"instructions":` + calls + `}]`
	}
	balance := func() string {
		key := m.keys(2)
		amount := m.number(1 << 40)
		return fmt.Sprintf(`{"accountIndex":%d,"mint":%q,"owner":%q,"programId":%q,"uiTokenAmount":{"amount":"%d","decimals":6,"uiAmount":%f,"uiAmountString":"%[5]d"}}`,
			m.number(12), key[0], key[1], solana.TokenProgramID, amount, float64(amount)/1e6)
	}
	quoted := make([]string, len(logs))
	for i := range logs {
		quoted[i] = fmt.Sprintf("%q", logs[i])
	}
	addresses := make([]string, len(loaded))
	for i := range loaded {
		addresses[i] = fmt.Sprintf("%q", loaded[i])
	}
	return fmt.Sprintf(`{"computeUnitsConsumed":%d,"costUnits":%d,"err":null,"fee":5000,"innerInstructions":%s,"loadedAddresses":{"readonly":[],"writable":[%s]},"logMessages":[%s],"postBalances":%s,"postTokenBalances":%s,"preBalances":%s,"preTokenBalances":%s,"rewards":null,"status":{"Ok":null}}`,
		units, units+2000, calls, strings.Join(addresses, ","), strings.Join(quoted, ","), balances(), m.list(tokens, balance), balances(), m.list(tokens, balance))
}

func (m *blockMaker) list(n int, element func() string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = element()
	}
	return "[" + strings.Join(all, ",") + "]"
}

func (m *blockMaker) add(raw []byte, version, meta string) {
	m.transactions = append(m.transactions, fmt.Sprintf(`{"meta":%s,"transaction":[%q,"base64"],"version":%s}`, meta, base64.StdEncoding.EncodeToString(raw), version))
}

// fromMemory answers every call with the same body.
type fromMemory struct {
	body    []byte
	gzipped bool
	// reading is called while the body is read; nil for none.
	reading func()
}

func (f fromMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	body := io.Reader(bytes.NewReader(f.body))
	if f.gzipped {
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(readerFunc(func(p []byte) (int, error) {
		if f.reading != nil {
			f.reading()
		}
		return body.Read(p)
	}))}, nil
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func readFrom(tb testing.TB, transport http.RoundTripper) (*onchain.Block, error) {
	tb.Helper()
	c, err := New(Options{URL: "http://node", HTTP: &http.Client{Transport: transport}, Now: time.Now, Timeout: time.Minute})
	if err != nil {
		tb.Fatal(err)
	}
	return c.Block(tb.Context(), 8, treeKey)
}

// The block that is measured is the one that is described, and is never read in part.
func TestFullBlock(t *testing.T) {
	t.Parallel()
	raw := fullBlock(t)
	b, err := readFrom(t, fromMemory{body: raw})
	if err != nil {
		t.Fatal(err)
	}
	if b.Slot != 8 || b.Parent != 6 || b.Hash != hashA || b.UnknownVersions != 0 {
		t.Errorf("the block is %d after %d with the hash %s and %d unknown versions, want 8 after 6 with %s and none", b.Slot, b.Parent, b.Hash, b.UnknownVersions, hashA)
	}
	// Each of the pool's transactions has a call that names the tree, and six inner ones.
	var got [][2]int
	for _, tx := range b.Transactions {
		accounts := tx.Instructions[0].Accounts
		got = append(got, [2]int{len(tx.Instructions), len(accounts)})
		if !slices.Contains(accounts, treeKey) || tx.Failed || tx.Signature.IsZero() || tx.FeePayer.IsZero() {
			t.Errorf("the transaction is %+v, want one that names the tree, succeeded, and has payer and signature", tx)
		}
	}
	if diff := cmp.Diff([][2]int{{7, 14}, {7, 16}}, got); diff != "" {
		t.Errorf("instructions and accounts of the pool's transactions in v0 and v1 (-want +got)\n%s", diff)
	}
	for _, cut := range []int{1, 2, 5, 100, len(raw) / 3, len(raw) / 2, len(raw) - 100} {
		b, err := readFrom(t, fromMemory{body: raw[:len(raw)-cut]})
		if b != nil {
			t.Errorf("a block without its last %d of %d bytes is returned", cut, len(raw))
		}
		checkError(t, err, onchain.KindBadResponse, 0, nil)
	}
}

// BenchmarkBlock measures reading a full block of mainnet through the client, as it is and
// compressed. The aim is 15 ms and 20 MB a block. cpu-ms/block counts the time of the processor,
// which other programs of the machine change less than ms/block; peak-kB is the most memory in use
// besides the answer, and B/op what was allocated in all.
func BenchmarkBlock(b *testing.B) {
	raw := fullBlock(b)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(raw) // a buffer takes every write
	_ = z.Close()
	for name, transport := range map[string]fromMemory{"plain": {body: raw}, "gzip": {body: zipped.Bytes(), gzipped: true}} {
		b.Run(name, func(b *testing.B) {
			peak := peakMemory(b, transport)
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			began := processorTime(b)
			for b.Loop() {
				if block, err := readFrom(b, transport); err != nil || len(block.Transactions) != 2 {
					b.Fatalf("block %+v, error %v: want two transactions", block, err)
				}
			}
			n := float64(b.N)
			b.ReportMetric(b.Elapsed().Seconds()*1000/n, "ms/block")
			b.ReportMetric((processorTime(b)-began).Seconds()*1000/n, "cpu-ms/block")
			b.ReportMetric(float64(peak)/1000, "peak-kB")
		})
	}
}

// peakMemory returns the most bytes in use while a block is read.
func peakMemory(b *testing.B, transport fromMemory) (peak uint64) {
	b.Helper()
	inUse := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before, reads := inUse(), 0
	transport.reading = func() {
		if reads++; reads%20 == 0 {
			peak = max(peak, inUse()-min(before, inUse()))
		}
	}
	if _, err := readFrom(b, transport); err != nil {
		b.Fatal(err)
	}
	return peak
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
