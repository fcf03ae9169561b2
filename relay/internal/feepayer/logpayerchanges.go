package feepayer

import "github.com/gagliardetto/solana-go"

// change says that a payer is used again or, if dry is set, is no longer used.
type change struct {
	payer    solana.PublicKey
	lamports uint64
	dry      bool
	// breakerClosed says that the payer's breaker, which a refusal by the chain had opened, has
	// closed.
	breakerClosed bool
}

func (p *Payers) logChange(c change) {
	switch {
	case c.dry:
		p.log.Warn("fee payer fell below its minimum and is not used; fund it", "payer", c.payer, "lamports", c.lamports, "minimum", p.minBalance)
	case c.breakerClosed:
		p.log.Info("fee payer refused by the chain is used again", "payer", c.payer, "lamports", c.lamports)
	default:
		p.log.Info("funded fee payer is used again", "payer", c.payer, "lamports", c.lamports, "minimum", p.minBalance)
	}
}

// transition says whether the relay has just lost its last usable payer, or has one again.
type transition int

const (
	noTransition transition = iota
	// noneUsable: the last usable payer can no longer be used.
	noneUsable
	// usableAgain: a payer can be used after none could.
	usableAgain
)

// overallTransition returns the transition since the previous call of this function. Before the
// first reading it returns noTransition. The caller has locked mu.
func (p *Payers) overallTransition() transition {
	known := false
	for _, a := range p.accounts {
		known = known || a.known
		if a.usable(p.minBalance) {
			if p.exhausted {
				p.exhausted = false
				return usableAgain
			}
			return noTransition
		}
	}
	if known && !p.exhausted {
		p.exhausted = true
		return noneUsable
	}
	return noTransition
}

// logTransition logs a transition, and calls funded when a payer can be used again. The caller
// must not have locked mu.
func (p *Payers) logTransition(t transition) {
	switch t {
	case noneUsable:
		p.log.Error("no usable fee payer; new work is refused and started work waits until one is funded", "payers", len(p.keys), "minimum", p.minBalance)
	case usableAgain:
		p.log.Info("fee payer usable again; paying resumed")
		if p.funded != nil {
			p.funded()
		}
	case noTransition:
	}
}
