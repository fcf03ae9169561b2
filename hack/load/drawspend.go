package load

import (
	"crypto/ed25519"
	"encoding/binary"
	"math/rand/v2"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// spend is what one client wants, and how it behaves.
type spend struct {
	number int
	kind   shieldpool.Kind
	rand   *rand.Rand
	// inputs are complete except for the root.
	inputs    shieldpool.PublicInputs
	recipient solana.PublicKey
	// swap is nil unless the spend is a swap; its terms are complete once it has a price.
	swap  *Swap
	notes [][]byte

	call Call
	// prefer is the Prefer header; empty for none.
	prefer string
	// answerTimeout is how long the client waits for one answer.
	answerTimeout time.Duration
	// hasIdempotencyKey says that the request and its repeats have an Idempotency-Key.
	hasIdempotencyKey bool
	// repeats says that the client sends an accepted request again, as after a lost answer.
	repeats bool
	// sendsDirectly says that the wallet also sends the spend to the chain, after directDelay.
	sendsDirectly bool
	directDelay   time.Duration
	// reproves says that repeats have another proof of the same inputs.
	reproves bool
}

const (
	// minAmount and maxAmount bound a withdrawal's lamports, to cover fee and recipient's rent.
	minAmount, maxAmount = 10_000_000, 60_000_000
	// maxNoteSize and maxSwapNoteSize bound a note, so that two notes fit into a transaction.
	maxNoteSize, maxSwapNoteSize = 100, 80
	// maxDirectDelay is about the time that a transaction takes to be confirmed, so that
	// either transaction may land first.
	maxDirectDelay = 1500 * time.Millisecond
	// keyBytes is the number of random bytes in an Idempotency-Key.
	keyBytes = 16
)

// newSpend draws a spend of fresh notes. The same seed and number give the same spend.
func newSpend(o *Options, number int) *spend {
	s := &spend{number: number, kind: shieldpool.KindTransfer, rand: rand.New(rand.NewPCG(o.Seed, uint64(number)))} //nolint:gosec // the number counts from 0; a schedule that repeats needs no secure randomness
	r := s.rand
	s.inputs = shieldpool.PublicInputs{
		MintAddress:   o.Mint.Field,
		ExtDataHash:   field(r),
		Nullifiers:    [2][32]byte{field(r), field(r)},
		Commitments:   [2][32]byte{field(r), field(r)},
		ChainNoteHash: field(r),
	}
	if r.IntN(5) == 0 { // one note is spent, the other input is empty
		s.inputs.Nullifiers[1] = [32]byte{}
	}
	longest := maxNoteSize
	switch {
	case o.Swaps > 0 && r.Float64() < o.Swaps:
		s.kind, longest = shieldpool.KindSwap, maxSwapNoteSize
		s.withdraw()
		s.toSwap(o)
	case r.Float64() < o.Withdrawals:
		s.kind = shieldpool.KindWithdrawal
		s.withdraw()
	}
	for range r.IntN(3) {
		s.notes = append(s.notes, bytesOf(r, 32+r.IntN(longest-32)))
	}
	s.drawBehaviour(o)
	return s
}

func (s *spend) withdraw() {
	s.recipient = wallet(s.rand)
	s.inputs.PublicAmount = -(minAmount + s.rand.Int64N(maxAmount-minAmount))
	s.inputs.ExtDataHash = shieldpool.ExtDataHash(shieldpool.Destination{Recipient: s.recipient})
}

// toSwap turns a withdrawal into a swap that has no price yet.
func (s *spend) toSwap(o *Options) {
	net, _ := o.Market.Pool.Profile.Fees.Net(s.inputs.Gross()) // every amount is above the fee
	s.swap = &Swap{Lamports: net, Unreachable: s.rand.Float64() < o.Unreachable, Digits: s.rand.IntN(2) == 0}
}

// request returns a request without the root, and without proof and key.
func (s *spend) request() Request {
	q := Request{Inputs: s.inputs, Recipient: s.recipient, Notes: s.notes}
	if s.swap != nil {
		swap := *s.swap
		q.Swap = &swap
	}
	return q
}

func (s *spend) drawBehaviour(o *Options) {
	r := s.rand
	s.call, s.answerTimeout = CallTransact, o.Timeout
	if s.swap != nil {
		s.call = CallSwap
	}
	switch r.IntN(10) {
	case 0, 1, 2:
		s.prefer = "respond-async"
	case 3, 4:
		s.prefer = "wait=2"
	case 5:
		s.prefer, s.answerTimeout = "wait=1", o.Timeout/10 // the client often gives up before the answer
	case 6, 7:
		if s.kind == shieldpool.KindWithdrawal {
			s.call = CallWithdraw
		}
	}
	s.hasIdempotencyKey = r.IntN(2) == 0
	s.sendsDirectly = r.Float64() < o.DirectShare && s.swap == nil
	s.directDelay = time.Duration(r.Int64N(int64(maxDirectDelay)))
	s.repeats = r.IntN(8) == 0
	s.reproves = r.IntN(2) == 0
}

// rival makes another spend with the same first nullifier, as a wallet on two machines may do.
func (s *spend) rival(o *Options, number int) *spend {
	other := newSpend(o, number)
	other.inputs.Nullifiers[0] = s.inputs.Nullifiers[0]
	return other
}

func field(r *rand.Rand) [32]byte {
	var e fr.Element
	e.SetBytes(bytesOf(r, 40))
	return e.Bytes()
}

func wallet(r *rand.Rand) solana.PublicKey {
	return solana.PrivateKey(ed25519.NewKeyFromSeed(bytesOf(r, ed25519.SeedSize))).PublicKey()
}

func bytesOf(r *rand.Rand, n int) []byte {
	b := make([]byte, 0, n+7)
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, r.Uint64())
	}
	return b[:n]
}
