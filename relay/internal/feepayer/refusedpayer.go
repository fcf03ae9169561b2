package feepayer

import (
	"time"

	"github.com/gagliardetto/solana-go"
)

const (
	// minProbeDelay is how long a payer is not used after a refusal, before one attempt may probe
	// it. Each further refusal in a row doubles the delay, up to maxProbeDelay.
	minProbeDelay = 5 * time.Second
	maxProbeDelay = time.Minute
)

// breaker takes a payer out of use when the chain refuses it although its known balance
// could pay. The zero value is closed.
type breaker struct {
	open bool
	// refusals counts the refusals in a row, without a working attempt in between.
	refusals  int
	refusedAt time.Time
	// knownLamports is the balance, in lamports, that the last refusal contradicted.
	knownLamports uint64
	probeAt       time.Time
	probing       bool
}

// allows reports whether an attempt may use the payer: any attempt while the breaker is closed,
// and one at a time once a probe is due.
func (b *breaker) allows(now time.Time) bool {
	return !b.open || !b.probing && !now.Before(b.probeAt)
}

// start records that an attempt uses the payer.
func (b *breaker) start() { b.probing = b.open }

// release ends a probe whose result is not known.
func (b *breaker) release(now time.Time) {
	if b.probing {
		b.probing, b.probeAt = false, now.Add(b.wait())
	}
}

// recordRefusal opens the breaker and reports whether it was closed before.
func (b *breaker) recordRefusal(now time.Time, knownLamports uint64) (opened bool) {
	if b.open && !b.probing {
		return false // an attempt from before the breaker opened
	}
	opened = !b.open
	b.refusals++
	b.open, b.probing, b.refusedAt, b.knownLamports = true, false, now, knownLamports
	b.probeAt = now.Add(b.wait())
	return opened
}

// closeAfterSuccess closes the breaker and reports whether it was open before.
func (b *breaker) closeAfterSuccess() (closed bool) {
	closed = b.open
	*b = breaker{}
	return closed
}

// closeIfFunded closes the breaker if n was read after the refusal. The caller has checked that n
// is at least the minimum. From the second refusal in a row on, n also has to differ from
// knownLamports. Without this condition, a node that reports too many lamports would close the
// breaker again and again, and the chain would refuse every attempt.
func (b *breaker) closeIfFunded(n reading) {
	if b.open && n.began.After(b.refusedAt) && (b.refusals == 1 || n.lamports != b.knownLamports) {
		b.open, b.probing = false, false
	}
}

func (b *breaker) wait() time.Duration {
	return min(minProbeDelay<<min(b.refusals-1, 10), maxProbeDelay)
}

// MarkRefused records that the chain refused the key as a payer, because the account lacks
// lamports or does not exist. The payer is not used again until a new reading shows at least the
// minimum, or until a probing attempt has landed.
func (p *Payers) MarkRefused(key solana.PublicKey, err error) {
	p.mu.Lock()
	a := p.byKey[key]
	if a == nil {
		p.mu.Unlock()
		return
	}
	opened, lamports := a.breaker.recordRefusal(p.now(), a.lamports), a.lamports
	changed := p.overallTransition()
	p.mu.Unlock()
	if opened {
		p.log.Warn("fee payer refused by the chain is not used", "payer", key, "lamports", lamports, "error", err)
		p.readSoon()
	}
	p.logTransition(changed)
}

// MarkWorking records that a transaction of the payer landed, so that it is used again.
func (p *Payers) MarkWorking(key solana.PublicKey) {
	p.mu.Lock()
	a := p.byKey[key]
	closed := a != nil && a.breaker.closeAfterSuccess()
	changed := p.overallTransition()
	p.mu.Unlock()
	if closed {
		p.log.Info("fee payer refused by the chain is used again", "payer", key)
	}
	p.logTransition(changed)
}
