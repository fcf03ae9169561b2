package sweep

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// fundPlan plans the moves that bring each new payer to the target, while each old payer keeps
// at least o.Keep. When there is not enough for all, it raises the poorest new payers first, to
// equal balances. A new payer needs minBalance to be usable. If a new payer would still hold less
// than that, nothing is moved, and the result short says what is missing. If both results are nil,
// there is nothing to do.
func fundPlan(from, to []balance, o *FundOrder, price uint64) (moves []move, short *Short) {
	minBalance := min(max(o.Keep, shieldpool.RentExempt), o.Target)
	sources := slices.Clone(from)
	var available uint64
	for i := range sources {
		sources[i].lamports = subtract(sources[i].lamports, max(o.Keep, shieldpool.RentExempt)+feeOf(price))
		available += sources[i].lamports
	}
	slices.SortStableFunc(sources, func(a, b balance) int {
		return cmp.Or(cmp.Compare(b.lamports, a.lamports), bytes.Compare(a.key[:], b.key[:]))
	})
	level := waterLevel(to, available, o.Target)
	poorest := slices.MinFunc(to, func(a, b balance) int { return cmp.Compare(a.lamports, b.lamports) }).lamports
	if poorest < minBalance && level < minBalance {
		return nil, shortage(to, sources, available, minBalance)
	}
	needs := slices.Clone(to)
	for i := range needs {
		needs[i].lamports = subtract(level, needs[i].lamports)
		if level < o.Target && needs[i].lamports < shieldpool.RentExempt {
			needs[i].lamports = 0 // the old payers still work, so their balances change: there would be tiny moves for ever
		}
	}
	for _, s := range sources {
		if m := fillNeeds(s, needs, to); len(m.transfers) > 0 {
			m.price = price
			moves = append(moves, m)
		}
	}
	if len(moves) == 0 && poorest < minBalance {
		return nil, shortage(to, sources, sources[0].lamports, minBalance) // no old payer alone can create a new payer's account
	}
	return moves, nil
}

// fillNeeds plans the transfers of one source to the accounts in need, and subtracts them from
// the needs. It plans no transfer that would leave an account below the rent-exempt minimum. Such
// a transfer would fail if it landed before the transfers from other sources.
func fillNeeds(s balance, needs, to []balance) move {
	m := move{from: s.key}
	for i := range needs {
		part := min(needs[i].lamports, s.lamports)
		if part == 0 || to[i].lamports+part < shieldpool.RentExempt || len(m.transfers) == maxTransfers {
			continue
		}
		m.transfers = append(m.transfers, Transfer{To: needs[i].key, Lamports: part})
		needs[i].lamports -= part
		s.lamports -= part
	}
	return m
}

// waterLevel is the highest balance to which the available lamports can raise every account that
// holds less; at most target.
func waterLevel(to []balance, available, target uint64) uint64 {
	sorted := slices.Clone(to)
	slices.SortFunc(sorted, func(a, b balance) int { return cmp.Compare(a.lamports, b.lamports) })
	var sum uint64
	for i, h := range sorted {
		sum += h.lamports
		n := uint64(i + 1)
		level := (sum + available) / n // of the i+1 poorest accounts, raised together
		if i+1 == len(sorted) || level <= sorted[i+1].lamports {
			return min(level, target)
		}
	}
	return target
}
