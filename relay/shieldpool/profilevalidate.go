package shieldpool

import (
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/gagliardetto/solana-go"
)

// profileInstruction is one account order, with the roles that it may contain and the roles
// that it must contain.
type profileInstruction struct {
	name   string
	order  *[]AccountRole
	roles  []Role
	needed []Role
}

// profileInstructions lists the account order of each instruction, with the roles for which the
// relay has an address.
func profileInstructions(orders *AccountOrders) []profileInstruction {
	const (
		payer, pool, tree, treasury = RolePayer, RolePool, RoleMerkleTree, RoleTreasury
		nullifier0, nullifier1      = RoleNullifier0, RoleNullifier1
		recipient, state, system    = RoleRecipient, RoleSwapState, RoleSystemProgram
		wsol, output, ata           = RoleSwapWSOL, RoleSwapOutput, RoleRecipientATA
		tokenProgram, routerProgram = RoleTokenProgram, RoleRouterProgram
	)
	type roles = []Role
	// These roles have an address in every instruction of a swap's second leg.
	secondLeg := roles{payer, pool, state, wsol, output, ata, tokenProgram, system}
	return []profileInstruction{
		{"transact", &orders.Transact, roles{payer, pool, treasury, tree, nullifier0, nullifier1, recipient, system}, roles{payer, tree, nullifier0, nullifier1, recipient}},
		{"transactSwap", &orders.TransactSwap, roles{payer, pool, treasury, tree, nullifier0, nullifier1, recipient, state, system}, roles{payer, tree, nullifier0, nullifier1, state}},
		{"initialize", &orders.Initialize, roles{payer, pool, treasury, tree, system}, roles{payer, tree}},
		{"prepareSwapSol", &orders.PrepareSwapSol, secondLeg, roles{payer, state, wsol}},
		{"executeSwap", &orders.ExecuteSwap, slices.Concat(secondLeg, roles{routerProgram}), roles{payer, state, wsol, output, ata, routerProgram}},
		{"closeSwapState", &orders.CloseSwapState, slices.Concat(secondLeg, roles{recipient}), roles{payer, state, recipient}},
		{"closeWrapped", &orders.CloseWrapped, slices.Concat(secondLeg, roles{recipient}), roles{wsol}},
	}
}

func classNames() []Class {
	return []Class{
		ClassStaleProof, ClassSpent, ClassBadInput, ClassOperator, ClassPolicy,
		ClassSwapNotReady, ClassTransient, ClassNotInitialised, ClassFeePayerEmpty,
		ClassRecipientRent, ClassRaiseCompute, ClassAlreadyProcessed, ClassBlockhash, ClassBug,
	}
}

// ValidateProfile checks a profile from any source for contradictions. Its error is
// ProfileProblems.
func ValidateProfile(p *Profile) error {
	r := &profileChecker{}
	r.validateTags(p.Tags)
	r.validateSeeds(p.Seeds)
	r.validateAccounts(&p.Accounts)
	r.validateMints(p.Mints)
	if p.Fees.Denominator == 0 || p.Fees.Numerator >= p.Fees.Denominator {
		r.fault("fees", nil, "expected a numerator below the denominator, received %d and %d: the pool would keep everything", p.Fees.Numerator, p.Fees.Denominator)
	}
	for i, c := range p.Classes {
		if c.First > c.Last {
			r.fault(fmt.Sprintf("classes[%d]", i), nil, "expected first to be at most last, received 0x%x and 0x%x", c.First, c.Last)
		}
	}
	if len(r.faults) == 0 {
		if _, err := p.Pool(p.Mints[0]); err != nil {
			r.fault("seeds", nil, "cannot derive the addresses: %w", err)
		}
	}
	if len(r.faults) > 0 {
		return ProfileProblems(r.faults)
	}
	return nil
}

func (r *profileChecker) validateTags(t Tags) {
	seen := map[uint8]string{}
	for _, tag := range []struct {
		name  string
		value uint8
	}{
		{"transact", t.Transact}, {"transactSwap", t.TransactSwap}, {"initialize", t.Initialize},
		{"prepareSwapSol", t.PrepareSwapSol}, {"executeSwap", t.ExecuteSwap}, {"closeSwapState", t.CloseSwapState},
	} {
		if other, twice := seen[tag.value]; twice {
			r.fault("tags."+tag.name, nil, "expected a tag of its own, received %d, which is the tag of %s", tag.value, other)
		}
		seen[tag.value] = tag.name
	}
}

func (r *profileChecker) validateSeeds(s Seeds) {
	for _, a := range []struct {
		name  string
		seeds []Seed
		// perNullifier: each nullifier, or each swap, has its own account.
		perNullifier bool
	}{{"pool", s.Pool, false}, {"merkleTree", s.MerkleTree, false}, {"treasury", s.Treasury, false}, {"nullifier", s.Nullifier, true}, {"swapState", s.SwapState, true}} {
		hasNullifier := slices.ContainsFunc(a.seeds, func(s Seed) bool { return s.Value == SeedNullifier })
		if len(a.seeds) == 0 {
			r.fault("seeds."+a.name, nil, "expected at least one seed, received none")
		} else if hasNullifier != a.perNullifier {
			r.fault("seeds."+a.name, nil, "expected the value nullifier in the seeds of nullifier and swapState, and in no others")
		}
	}
}

func (r *profileChecker) validateAccounts(a *AccountOrders) {
	for _, i := range profileInstructions(a) {
		path := "accounts." + i.name
		for _, needed := range i.needed {
			n := 0
			for _, role := range *i.order {
				if role.Role == needed {
					n++
				}
			}
			if n != 1 {
				r.fault(path, nil, "expected the role %s once, received it %d times", needed, n)
			}
		}
		for k, role := range *i.order {
			at := fmt.Sprintf("%s[%d]", path, k)
			if !slices.Contains(i.roles, role.Role) {
				r.fault(at, nil, "this instruction cannot have this role")
			}
			if role.Signer != (role.Role == RolePayer) {
				r.fault(at, nil, "expected only the payer as signer: the relay has no other key")
			}
		}
	}
}

func (r *profileChecker) validateMints(mints []Mint) {
	if len(mints) == 0 || len(mints) > MaxMints {
		r.fault("mints", nil, "expected 1 to %d, received %d", MaxMints, len(mints))
	}
	addresses, fields := map[solana.PublicKey]int{}, map[[32]byte]int{}
	for i, m := range mints {
		path := fmt.Sprintf("mints[%d]", i)
		if first, twice := addresses[m.Address]; twice {
			r.fault(path+".address", nil, "expected an address of its own, received the address of mints[%d]", first)
		}
		if first, twice := fields[m.Field]; twice {
			r.fault(path+".field", nil, "expected a field element of its own, received the field element of mints[%d]", first)
		}
		var e fr.Element
		if e.SetBytesCanonical(m.Field[:]) != nil {
			r.fault(path+".field", nil, "expected a field element, received a number that is not below the field's order")
		}
		addresses[m.Address], fields[m.Field] = i, i
	}
}

func parseField(text string) (f [32]byte, ok bool) {
	if len(text) != 2*len(f) {
		return f, false
	}
	_, err := hex.Decode(f[:], []byte(text))
	return f, err == nil
}
