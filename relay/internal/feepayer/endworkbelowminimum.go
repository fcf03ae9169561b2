package feepayer

import "github.com/relaypool/relaypool/relay/shieldpool"

// minimumFor returns the free balance that a payer needs to pay lamports: the minimum balance. A
// transaction that finishes work already begun may also spend the minimum, which is kept for this
// purpose, as long as the payer stays rent-exempt.
func (p *Payers) minimumFor(lamports uint64, endsWork bool) uint64 {
	if endsWork {
		return lamports + shieldpool.RentExempt
	}
	return p.minBalance
}
