package txmgr_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// Package chain compares the reports of endpoints with each other before the transaction manager
// gets them. With a lying endpoint among them, the manager still gets the truth, an unverified
// report, or no answer. The model chooses which; an unverified report may be a lie. The drill tests
// package chain itself, with lying endpoints of a local chain.

// modelLiar is a lying endpoint among honest ones.
type modelLiar struct {
	// percent is the share of calls in which the endpoint takes part, as the first or the second
	// endpoint that is asked; 0 without a lying endpoint.
	percent int
	// aim is the endpoint's report about every signature.
	aim modelAim
	// three: two honest endpoints outvote the lying one most of the time. With only one honest
	// endpoint, a report that the liar contradicts cannot be verified.
	three bool
	// stays: the endpoint goes on lying for a while after all other faults have ended.
	stays bool
}

// modelAim is the lying endpoint's report about signatures.
type modelAim int

const (
	aimLanded modelAim = iota
	aimFailed
	aimHidden
	// aimNone is the truth: the endpoint lies only about other things.
	aimNone
	modelAims
)

// lieSource returns the random source of a lie about a call; nil when the lying endpoint takes no part.
func (p *modelProcess) lieSource(method, key string) *rand.Rand {
	if p.w.liar.percent == 0 {
		return nil
	}
	r := p.draw(method, key)
	if r.IntN(100) >= p.w.liar.percent {
		return nil
	}
	return r
}

// draw returns a random source that depends, like faults, on the call alone.
func (p *modelProcess) draw(method, key string) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %s %s %s lies", p.w.seed, p.w.tick, p.name, method, key)
	return rand.New(rand.NewPCG(h.Sum64(), 5))
}

// randomError chooses a permanent error for a lie about a failed transaction.
func (m *modelRules) randomError(r *rand.Rand) *shieldpool.TransactionError {
	codes := []uint32{shieldpool.CodeProofInvalid, shieldpool.CodeRootNotFound, shieldpool.CodeDoubleSpend, shieldpool.CodeConservation}
	return m.programError(codes[r.IntN(len(codes))])
}

// withLies returns the statuses that the manager gets when the lying endpoint may take part. With
// absence, signatures that one endpoint does not know are also compared with another endpoint.
func (p *modelProcess) withLies(method string, v modelView, sigs []solana.Signature, truth []*onchain.Status, absence bool) []*onchain.Status {
	r := p.lieSource(method, modelKey(sigs))
	if r == nil {
		return truth
	}
	first := r.IntN(2) == 0
	if p.w.liar.three && r.IntN(4) > 0 {
		return truth // two honest endpoints agreed
	}
	out := make([]*onchain.Status, len(sigs))
	for i, t := range truth {
		lie := t
		switch p.w.liar.aim {
		case aimLanded:
			lie = &onchain.Status{Slot: v.finalized.slot, Confirmation: onchain.Finalized}
		case aimFailed:
			// The error depends on the signature alone, because signatures are polled in any order.
			err := p.w.chain.randomError(p.draw(method, modelKey(sigs[i:i+1])))
			lie = &onchain.Status{Slot: v.finalized.slot, Confirmation: onchain.Finalized, Err: err}
		case aimHidden:
			lie = nil
		default:
		}
		out[i] = compareReports(lie, t, first, absence)
	}
	return out
}

// compareReports returns the result of comparing a lie and the truth. first says that the lying endpoint
// was asked first.
func compareReports(lie, truth *onchain.Status, first, absence bool) *onchain.Status {
	one, two := truth, lie
	if first {
		one, two = lie, truth
	}
	switch {
	case one == nil && two == nil:
		return nil
	case one == nil && !absence:
		return nil // no other endpoint is asked
	case one == nil:
		one = two
	case !one.Decisive():
		return one // a status that decides nothing is not compared
	case two != nil && (one.Err == nil) == (two.Err == nil) && (one.Err == nil || *one.Err == *two.Err):
		agreed := *one
		agreed.Slot = min(one.Slot, two.Slot)
		if !two.Confirmation.AtLeast(one.Confirmation) {
			agreed.Confirmation = two.Confirmation
		}
		return &agreed
	}
	doubtful := *one
	doubtful.Unverified = true
	return &doubtful
}

// simulationWithLies returns the simulation that the manager gets when the lying endpoint may take part.
func (p *modelProcess) simulationWithLies(key string, truth onchain.Simulation) onchain.Simulation {
	r := p.lieSource("simulate", key)
	if r == nil {
		return truth
	}
	lie := truth
	if lie.Err = nil; r.IntN(2) == 0 {
		lie.Err = p.w.chain.randomError(r)
	}
	switch alone := r.IntN(3) == 0; {
	case lie.Err == nil: // successes are not compared: a transaction that will fail is sent, and costs a fee
		return lie
	case truth.Err == nil && !alone:
		return truth
	case truth.Err != nil && *lie.Err == *truth.Err:
		return truth
	default:
		lie.Unverified = true
		return lie
	}
}

// extraHeight returns by how much the reported last valid block height of a blockhash is too high, as
// before an upgrade or while no second endpoint corroborates the first one.
func (p *modelProcess) extraHeight(b *modelBlock) uint64 {
	r := p.lieSource("blockhash", "")
	if r == nil {
		return 0
	}
	return []uint64{0, b.slot - b.height, 22_000_000}[r.IntN(3)]
}
