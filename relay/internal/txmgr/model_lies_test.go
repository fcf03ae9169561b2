package txmgr_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// A model's endpoints are behind the engine's ports, where package chain compares one endpoint's
// reports with another's. With a hostile endpoint among them the ports still return the truth, or
// say that it is not verified, or do not answer. The model chooses which, and everything that a
// port does not call verified may be a lie. The lies themselves, told by endpoints of a local chain, belong to the drill.

// modelLies is a hostile endpoint among several.
type modelLies struct {
	// percent of the calls reach it, first or as the second one asked; 0 for none.
	percent int
	// aim is its report about every signature.
	aim modelAim
	// three says that two others agree most of the time, so that the truth can be
	// verified against it; with one other nothing that it contradicts can.
	three bool
	// stays says that it still lies when everything else is quiet.
	stays bool
}

// modelAim is a hostile endpoint's report about signatures.
type modelAim int

const (
	aimLanded modelAim = iota
	aimFailed
	aimHidden
	// aimNone is the truth: it lies about other things.
	aimNone
	modelAims
)

// settled reports whether outcomes can be known while the endpoint lies. They cannot when it
// contradicts, in every call, the only other one; then they wait, and have to come once it is honest.
func (l modelLies) settled() bool {
	return l.percent < 100 || l.three || l.aim == aimNone
}

// lies draws whether the hostile endpoint has a say in a call, and how it decides.
func (p *modelProcess) lies(method, key string) *rand.Rand {
	if p.w.hostile.percent == 0 {
		return nil
	}
	r := p.draw(method, key)
	if r.IntN(100) >= p.w.hostile.percent {
		return nil
	}
	return r
}

// draw depends, like faults, on the call alone.
func (p *modelProcess) draw(method, key string) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %s %s %s lies", p.w.seed, p.w.tick, p.name, method, key)
	return rand.New(rand.NewPCG(h.Sum64(), 5))
}

// modelProgramError is the final error in a lie about a failed transaction.
func modelProgramError(r *rand.Rand) *shieldpool.TransactionError {
	codes := []uint32{shieldpool.CodeProofInvalid, shieldpool.CodeRootNotFound, shieldpool.CodeDoubleSpend, shieldpool.CodeConservation}
	return programError(codes[r.IntN(len(codes))])
}

// contest gives the statuses as they come out when the hostile endpoint takes part. With absence
// the port also compares unknown signatures with another endpoint.
func (p *modelProcess) contest(method string, v modelView, sigs []solana.Signature, truth []*onchain.Status, absence bool) []*onchain.Status {
	r := p.lies(method, modelKey(sigs))
	if r == nil {
		return truth
	}
	first := r.IntN(2) == 0
	if p.w.hostile.three && r.IntN(4) > 0 {
		return truth // two honest ones have agreed
	}
	out := make([]*onchain.Status, len(sigs))
	for i, t := range truth {
		lie := t
		switch p.w.hostile.aim {
		case aimLanded:
			lie = &onchain.Status{Slot: v.finalized.slot, Confirmation: onchain.Finalized}
		case aimFailed:
			// Which error depends on the signature alone: many are asked for in any order.
			err := modelProgramError(p.draw(method, modelKey(sigs[i:i+1])))
			lie = &onchain.Status{Slot: v.finalized.slot, Confirmation: onchain.Finalized, Err: err}
		case aimHidden:
			lie = nil
		default:
		}
		out[i] = contested(lie, t, first, absence)
	}
	return out
}

// contested is the result of a lie and the truth, the lie being told first or second.
func contested(lie, truth *onchain.Status, first, absence bool) *onchain.Status {
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
		return one // nothing follows from it
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

// simulated is a simulation as it comes out when the hostile endpoint has a say.
func (p *modelProcess) simulated(key string, truth onchain.Simulation) onchain.Simulation {
	r := p.lies("simulate", key)
	if r == nil {
		return truth
	}
	said := truth
	if said.Err = nil; r.IntN(2) == 0 {
		said.Err = modelProgramError(r)
	}
	switch alone := r.IntN(3) == 0; {
	case said.Err == nil: // what would fail is sent, and costs a fee
		return said
	case truth.Err == nil && !alone:
		return truth
	case truth.Err != nil && *said.Err == *truth.Err:
		return truth
	default:
		said.Unverified = true
		return said
	}
}

// higher is by how much the reported last block height of a blockhash is too high, as before an
// upgrade or while no second endpoint corroborates the first one.
func (p *modelProcess) higher(b *modelBlock) uint64 {
	r := p.lies("blockhash", "")
	if r == nil {
		return 0
	}
	return []uint64{0, b.slot - b.height, 22_000_000}[r.IntN(3)]
}
