package sweep

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

func key(n byte) solana.PublicKey { return solana.PublicKey{n} }

func balances(first byte, lamports ...uint64) []balance {
	out := make([]balance, len(lamports))
	for i := range lamports {
		out[i] = balance{key(first + byte(i)), lamports[i]}
	}
	return out
}

const (
	sol      = 1_000_000_000
	minimum  = sol / 20
	plainFee = shieldpool.SignatureFee // of a transaction without priority fee
)

func TestFundPlan(t *testing.T) {
	t.Parallel()
	singleMove := func(from byte, to byte, lamports uint64) move {
		return move{from: key(from), transfers: []Transfer{{key(to), lamports}}}
	}
	tests := map[string]struct {
		from, to     []uint64
		target, keep uint64
		want         []move
		short        uint64 // how many lamports are missing
	}{
		"one funds one":                                            {[]uint64{2 * sol}, []uint64{0}, sol, minimum, []move{singleMove(1, 11, sol)}, 0},
		"the balance of a new payer counts":                        {[]uint64{2 * sol}, []uint64{sol / 4}, sol, minimum, []move{singleMove(1, 11, sol*3/4)}, 0},
		"all new payers are funded":                                {[]uint64{2 * sol}, []uint64{sol, 2 * sol}, sol, minimum, nil, 0},
		"all new payers are funded, the old payer is empty":        {[]uint64{0}, []uint64{sol}, sol, minimum, nil, 0},
		"a lamport is missing":                                     {[]uint64{2 * sol}, []uint64{sol - 1}, sol, minimum, []move{singleMove(1, 11, 1)}, 0},
		"one funds two":                                            {[]uint64{3 * sol}, []uint64{0, sol / 2}, sol, minimum, []move{{from: key(1), transfers: []Transfer{{key(11), sol}, {key(12), sol / 2}}}}, 0},
		"two fund one, the richer first":                           {[]uint64{minimum + plainFee + sol/4, sol}, []uint64{0}, sol, minimum, []move{singleMove(2, 11, sol-minimum-plainFee), singleMove(1, 11, minimum+plainFee)}, 0},
		"too little is shared equally":                             {[]uint64{minimum + plainFee + sol}, []uint64{0, 0}, sol, minimum, []move{{from: key(1), transfers: []Transfer{{key(11), sol / 2}, {key(12), sol / 2}}}}, 0},
		"the poorest is raised first":                              {[]uint64{minimum + plainFee + sol/2}, []uint64{sol / 2, 0, 3 * sol}, sol, minimum, []move{singleMove(1, 12, sol/2)}, 0},
		"equal shares are not moved again":                         {[]uint64{minimum + plainFee}, []uint64{sol / 2, sol/2 - 1}, sol, minimum, nil, 0},
		"shares below the rent-exempt minimum are not moved":       {[]uint64{minimum + plainFee + 2*shieldpool.RentExempt - 2}, []uint64{sol / 2, sol / 2}, sol, minimum, nil, 0},
		"a small amount is moved if it completes the target":       {[]uint64{sol}, []uint64{sol/2 - 1}, sol / 2, minimum, []move{singleMove(1, 11, 1)}, 0},
		"shares that leave a payer unusable":                       {[]uint64{minimum + plainFee + minimum}, []uint64{0, 0}, sol, minimum, nil, minimum},
		"no old payer has lamports to spare":                       {[]uint64{minimum, 0}, []uint64{0}, sol, minimum, nil, minimum},
		"a target below the minimum is enough":                     {[]uint64{sol}, []uint64{0}, shieldpool.RentExempt, minimum, []move{singleMove(1, 11, shieldpool.RentExempt)}, 0},
		"keeping nothing leaves the rent-exempt minimum":           {[]uint64{shieldpool.RentExempt + plainFee + sol}, []uint64{0}, 2 * sol, 0, []move{singleMove(1, 11, sol)}, 0},
		"two old payers, neither of which can create the account":  {[]uint64{shieldpool.RentExempt + plainFee + 500_000, shieldpool.RentExempt + plainFee + 500_000}, []uint64{0}, shieldpool.RentExempt, 0, nil, shieldpool.RentExempt - 500_000},
		"a part too small to create the account is left for later": {[]uint64{minimum + plainFee + 500_000, minimum + plainFee + sol - 500_000}, []uint64{0}, sol, minimum, []move{singleMove(2, 11, sol-500_000)}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, short := fundPlan(balances(1, test.from...), balances(11, test.to...), &FundOrder{Target: test.target, Keep: test.keep}, 0)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(move{})); diff != "" {
				t.Errorf("plan differs (-want +got):\n%s", diff)
			}
			if missing := missing(short); missing != test.short {
				t.Errorf("%d lamports are missing (%v), want %d", missing, short, test.short)
			}
		})
	}
}

func missing(s *Short) uint64 {
	if s == nil {
		return 0
	}
	return s.Need - s.Have
}

// TestFundingKeepsTheRequestedBalance plans again and again until there is nothing to do. Each
// time some of the moves are lost, as after a crash.
func TestFundingKeepsTheRequestedBalance(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	draw := func(n int) (out []uint64) {
		for range n {
			out = append(out, uint64(random.IntN(4))*uint64(random.IntN(sol)))
		}
		return out
	}
	for n := range 3000 {
		o := FundOrder{Target: shieldpool.RentExempt + uint64(random.IntN(2*sol)), Keep: uint64(random.IntN(sol / 10))}
		price := uint64(random.IntN(2)) * 900_000
		from, to := balances(1, draw(1+random.IntN(4))...), balances(101, draw(1+random.IntN(20))...)
		paid, before := uint64(0), sum(from)+sum(to)
		started := map[solana.PublicKey]uint64{}
		for _, h := range slices.Concat(from, to) {
			started[h.key] = h.lamports
		}
		for round := 0; ; round++ {
			moves, short := fundPlan(from, to, &o, price)
			if len(moves) == 0 {
				break
			}
			if short != nil || round > 50 {
				t.Fatalf("case %d: in round %d the plan is %v, short %v", n, round, moves, short)
			}
			for _, m := range moves {
				if round < 10 && random.IntN(2) == 0 {
					continue // it never landed
				}
				paid += feeOf(price)
				land(t, from, to, &m)
			}
		}
		if sum(from)+sum(to)+paid != before {
			t.Fatalf("case %d: lamports were created or lost", n)
		}
		for _, h := range from {
			if h.lamports < max(o.Keep, shieldpool.RentExempt) && h.lamports != started[h.key] {
				t.Fatalf("case %d: an old payer was left with %d, below the %d that it keeps", n, h.lamports, o.Keep)
			}
		}
		for _, h := range to {
			if h.lamports > max(o.Target, started[h.key]) {
				t.Fatalf("case %d: a new payer was given %d, above the target of %d", n, h.lamports, o.Target)
			}
		}
	}
}

// exists reports whether the account exists with this balance.
func exists(h balance) bool { return h.lamports >= shieldpool.RentExempt }

func sum(of []balance) (n uint64) {
	for _, h := range of {
		n += h.lamports
	}
	return n
}

// land applies a move as the chain would, and fails the test where the chain would refuse it.
func land(t *testing.T, from, to []balance, m *move) {
	t.Helper()
	source := &from[m.from[0]-1]
	cost := feeOf(m.price)
	for _, tr := range m.transfers {
		to := &to[tr.To[0]-101]
		cost, to.lamports = cost+tr.Lamports, to.lamports+tr.Lamports
		if tr.Lamports == 0 || !exists(*to) {
			t.Fatalf("the chain refuses %+v", m)
		}
	}
	if source.lamports < cost+shieldpool.RentExempt || len(m.transfers) > maxTransfers {
		t.Fatalf("%+v takes more than the balance %d", m, source.lamports)
	}
	source.lamports -= cost
}

func TestAllPlan(t *testing.T) {
	t.Parallel()
	const price, fee = 1_000_000, shieldpool.SignatureFee + computeLimit
	to := func(from byte, lamports, price uint64) move {
		return move{key(from), []Transfer{{key(11), lamports}}, price}
	}
	tests := map[string]struct {
		from []uint64
		want []move
		left uint64
	}{
		"everything but the fee":                                             {[]uint64{sol, 2 * sol}, []move{to(1, sol-fee, price), to(2, 2*sol-fee, price)}, 0},
		"empty payers":                                                       {[]uint64{0, 0}, nil, 0},
		"the least that can pay the price":                                   {[]uint64{shieldpool.RentExempt + fee}, []move{to(1, shieldpool.RentExempt, price)}, 0},
		"a lamport too little for the price: no priority fee":                {[]uint64{shieldpool.RentExempt + fee - 1}, []move{to(1, shieldpool.RentExempt+computeLimit-1, 0)}, 0},
		"the least that can pay at all":                                      {[]uint64{shieldpool.RentExempt + plainFee}, []move{to(1, shieldpool.RentExempt, 0)}, 0},
		"a lamport too little for the fee: only other payers' lamports move": {[]uint64{shieldpool.RentExempt + plainFee - 1, sol}, []move{to(2, sol-fee, price)}, shieldpool.RentExempt + plainFee - 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, left := allPlan(balances(1, test.from...), key(11), price)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(move{})); diff != "" || left != test.left {
				t.Errorf("%d are left, want %d; plan differs (-want +got):\n%s", left, test.left, diff)
			}
		})
	}
}

func TestLargestTransactionFitsPacket(t *testing.T) {
	t.Parallel()
	m := move{from: key(1), price: 1}
	for i := range maxTransfers {
		m.transfers = append(m.transfers, Transfer{key(byte(10 + i)), sol})
	}
	tx, err := m.build(m.from, compute(m.price), solana.Hash{1})
	if err != nil {
		t.Fatal(err)
	}
	tx.Signatures = make([]solana.Signature, tx.Message.Header.NumRequiredSignatures)
	raw, err := tx.MarshalBinary()
	if err != nil || len(raw) > shieldpool.MaxTransactionSize {
		t.Errorf("the transaction has %d bytes (%v), want at most %d", len(raw), err, shieldpool.MaxTransactionSize)
	}
	if tx.Message.Header.NumRequiredSignatures != 1 || tx.Message.AccountKeys[0] != m.from {
		t.Error("the transaction has other signers than the old payer")
	}
}
