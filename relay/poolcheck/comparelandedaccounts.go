package poolcheck

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

// These are the names of Compare's checks.
const (
	CheckTransact     = "transact"
	CheckTransactSwap = "transact_swap"
)

// ReasonProfileMismatch means that an instruction that the program has accepted differs
// from the one that the profile would make. Only past transactions show such a difference. The
// operator does not read past transactions, so the RelayPool's condition never has this reason.
const ReasonProfileMismatch Reason = "ProfileMismatch"

// Instruction is one instruction of a transaction, with its accounts in their order.
type Instruction struct {
	Program  solana.PublicKey
	Accounts []solana.PublicKey
	Data     []byte
}

// Landed is a transaction that succeeded.
type Landed struct {
	Signature    solana.Signature
	FeePayer     solana.PublicKey
	Instructions []Instruction
}

// Compare compares the profile's tags and account orders of Transact and TransactSwap with
// transactions of the pool that the program has accepted. A kind without such a transaction
// stays unknown.
func Compare(p *shieldpool.Pool, landed []Landed) []Check {
	kinds := []*comparison{
		{pool: p, name: CheckTransact, tag: p.Profile.Tags.Transact, order: p.Profile.Accounts.Transact},
		{pool: p, name: CheckTransactSwap, tag: p.Profile.Tags.TransactSwap, order: p.Profile.Accounts.TransactSwap},
	}
	for i := range landed {
		for _, ix := range landed[i].Instructions {
			if !ix.Program.Equals(p.Profile.ProgramID) || len(ix.Data) < shieldpool.TransactLength {
				continue
			}
			inputs, err := shieldpool.ParsePublicInputs(ix.Data[1+shieldpool.ProofLength : shieldpool.TransactLength])
			if err != nil {
				continue // an instruction of another kind, at least as long as a Transact
			}
			roles := rolesOf(p, inputs, landed[i].FeePayer)
			k := kinds[0]
			if isSwap(p, &ix, roles) {
				k = kinds[1]
			}
			k.compare(landed[i].Signature, &ix, roles)
		}
	}
	checks := make([]Check, len(kinds))
	for i, k := range kinds {
		checks[i] = k.check()
	}
	return checks
}

// isSwap recognises a TransactSwap by its swap state, whose address follows from the
// nullifier, or by its tag.
func isSwap(p *shieldpool.Pool, ix *Instruction, roles accountRoles) bool {
	if slices.ContainsFunc(ix.Accounts, func(a solana.PublicKey) bool { return slices.Contains(roles[a], shieldpool.RoleSwapState) }) {
		return true
	}
	return ix.Data[0] == p.Profile.Tags.TransactSwap && len(ix.Data) >= shieldpool.TransactSwapLength
}

// accountRoles are the roles of accounts whose address the profile determines. One account may
// have several roles. For example, both nullifiers of a deposit without inputs are zero, so
// they have the same account.
type accountRoles map[solana.PublicKey][]shieldpool.Role

func rolesOf(p *shieldpool.Pool, in *shieldpool.PublicInputs, payer solana.PublicKey) accountRoles {
	roles := accountRoles{
		payer: {shieldpool.RolePayer}, p.Address: {shieldpool.RolePool}, p.Treasury: {shieldpool.RoleTreasury},
		p.MerkleTree: {shieldpool.RoleMerkleTree}, solana.SystemProgramID: {shieldpool.RoleSystemProgram},
	}
	for i, role := range []shieldpool.Role{shieldpool.RoleNullifier0, shieldpool.RoleNullifier1} {
		if key, _, err := p.Nullifier(in.Nullifiers[i]); err == nil {
			roles[key] = append(roles[key], role)
		}
	}
	if key, _, err := p.SwapState(in.Nullifiers[0]); err == nil {
		roles[key] = append(roles[key], shieldpool.RoleSwapState)
	}
	return roles
}

// comparison collects what Compare finds for one kind of instruction.
type comparison struct {
	pool  *shieldpool.Pool
	name  string
	tag   uint8
	order []shieldpool.AccountRole

	count int // instructions of this kind
	// differences and signature are of the first transaction that differs from the profile.
	differences, signature string
}

// compare compares one instruction with the profile.
func (c *comparison) compare(signature solana.Signature, ix *Instruction, roles accountRoles) {
	c.count++
	if c.differences != "" {
		return
	}
	var differences []string
	if ix.Data[0] != c.tag {
		differences = append(differences, fmt.Sprintf("tag %d", ix.Data[0]))
	}
	if len(ix.Accounts) != len(c.order) {
		differences = append(differences, fmt.Sprintf("%d accounts", len(ix.Accounts)))
	}
	for i, a := range ix.Accounts {
		got := roles[a]
		switch {
		case i >= len(c.order), slices.Contains(got, c.order[i].Role):
		case len(got) == 0 && c.order[i].Role == shieldpool.RoleRecipient:
		case c.order[i].Role == shieldpool.RoleRecipient && slices.Contains(got, shieldpool.RolePayer): // a transfer or a deposit
		case len(got) == 0:
			differences = append(differences, fmt.Sprintf("another account at place %d, where the profile has %s", i, c.order[i].Role))
		default:
			differences = append(differences, fmt.Sprintf("%s at place %d, where the profile has %s", got[0], i, c.order[i].Role))
		}
	}
	c.differences, c.signature = strings.Join(differences, ", "), signature.String()
}

func (c *comparison) check() Check {
	names := make([]string, len(c.order))
	for i, role := range c.order {
		names[i] = string(role.Role)
	}
	check := Check{Name: c.name, State: OK, Expected: fmt.Sprintf("tag %d and accounts %s", c.tag, strings.Join(names, ", "))}
	switch {
	case c.count == 0:
		check.State, check.Reason = Unknown, ReasonNotChecked
		check.Found, check.Remedy = "no confirmed transaction of this kind to compare with", "probe again after the first one"
	case c.differences != "":
		check.State, check.Reason = Failed, ReasonProfileMismatch
		check.Found = "a confirmed transaction with " + c.differences + ", " + c.signature
		check.Remedy = fmt.Sprintf("correct tags, seeds and accounts of profile %s, in a profile file of your own if it is built in", c.pool.Profile.Name)
	default:
		check.Found = fmt.Sprintf("the same in %d confirmed transactions", c.count)
	}
	return check
}
