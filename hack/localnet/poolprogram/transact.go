package poolprogram

import (
	"slices"

	"github.com/gagliardetto/solana-go/programs/system"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// transaction is one running Transact or TransactSwap.
type transaction struct {
	*shieldpool.Call
	program    *program
	v          *bank.Invocation
	pool       *pool
	order      []shieldpool.AccountRole
	accounts   map[shieldpool.Role]*bank.AccountRef
	nullifiers [2]programAddress
	// swapState is set for a TransactSwap only.
	swapState programAddress
	tree      *shieldpool.TreeAccount
}

var nullifierRoles = [2]shieldpool.Role{shieldpool.RoleNullifier0, shieldpool.RoleNullifier1}

// transact spends up to two notes, appends up to two notes and moves the public
// amount. A TransactSwap moves the amount to a new swap state. All checks come before
// all changes, the cheap checks first.
func (p *program) transact(v *bank.Invocation, order []shieldpool.AccountRole) error {
	t := &transaction{program: p, v: v, order: order}
	for _, step := range []func() error{
		t.decode, t.checkAccounts, t.checkRoot, t.checkUnspent, t.checkDestination, t.checkProof,
		t.moveAmount, t.spend, t.appendLeaves,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (t *transaction) decode() error {
	call, err := t.program.profile.ParseData(t.v.Data)
	if err != nil {
		return t.v.Refuse(errInvalidInstructionData, "want tag, proof, canonical public inputs and at most one complete note envelope")
	}
	if err := call.Inputs.CheckNullifiers(); err != nil {
		return t.v.Refuse(errInvalidInstructionData, "want two different nullifiers, not both zero")
	}
	if call.Swap != nil && !call.Inputs.HasNullifier(0) {
		return t.v.Refuse(errInvalidInstructionData, "want a first nullifier, from which a swap's state derives its address")
	}
	t.Call = call
	return nil
}

// checkAccounts checks the accounts' rights, pool and mint, and the addresses of the roles.
func (t *transaction) checkAccounts() error {
	var err error
	if t.accounts, err = roles(t.v, 0, t.order); err != nil {
		return err
	}
	poolAccount := t.accounts[shieldpool.RolePool]
	if t.pool, err = t.program.byAddress(t.v, poolAccount.Key()); err != nil {
		return err
	}
	if poolAccount.Owner() != t.v.ProgramID {
		return bank.ErrUninitializedAccount
	}
	mint, ok := t.program.profile.MintByField(t.Inputs.MintAddress)
	if !ok {
		return t.v.Refuse(errInvalidInstructionData, "the mint is not one of the pool's")
	}
	// The mint must belong to this pool. If the seeds omit the mint, one pool serves every mint.
	if served := t.program.poolOf(mint); served.address.key != t.pool.address.key {
		return bank.ErrInvalidSeeds
	}
	return t.checkAddresses()
}

// checkAddresses checks that each account of a derived role has the derived address.
func (t *transaction) checkAddresses() (err error) {
	expected := map[shieldpool.Role]programAddress{
		shieldpool.RoleMerkleTree: t.pool.tree,
		shieldpool.RoleTreasury:   t.pool.treasury,
	}
	find := func(role shieldpool.Role, seeds []shieldpool.Seed, nullifier [32]byte) (address programAddress, err error) {
		if address, err = t.program.derive(t.pool, seeds, nullifier[:]); err != nil {
			return address, bank.ErrInvalidSeeds
		}
		expected[role] = address
		return address, t.v.Consume(address.searchUnits())
	}
	for i, role := range nullifierRoles {
		if t.nullifiers[i], err = find(role, t.program.profile.Seeds.Nullifier, t.Inputs.Nullifiers[i]); err != nil {
			return err
		}
	}
	if t.Swap != nil {
		if t.swapState, err = find(shieldpool.RoleSwapState, t.program.profile.Seeds.SwapState, t.Inputs.Nullifiers[0]); err != nil {
			return err
		}
	}
	for role, address := range expected {
		if t.accounts[role].Key() != address.key {
			return bank.ErrInvalidSeeds
		}
	}
	return nil
}

// poolOf returns the pool of one of the profile's mints.
func (p *program) poolOf(mint shieldpool.Mint) *pool {
	return &p.pools[slices.IndexFunc(p.pools, func(served pool) bool { return served.mint == mint })]
}

func (t *transaction) checkRoot() error {
	account := t.accounts[shieldpool.RoleMerkleTree]
	if account.Owner() != t.v.ProgramID {
		return bank.ErrUninitializedAccount
	}
	var err error
	if t.tree, err = t.program.profile.ParseTree(account.Data()); err != nil {
		return bank.ErrInvalidAccountData
	}
	if t.Inputs.Root == ([field]byte{}) || !slices.Contains(t.tree.History, t.Inputs.Root) {
		return errRootNotFound
	}
	return nil
}

func (t *transaction) checkUnspent() error {
	for i, role := range nullifierRoles {
		// A nullifier is spent when the program owns its account. Existence is not
		// enough: anybody can create a system account there by sending lamports.
		if t.Inputs.HasNullifier(i) && t.accounts[role].Owner() == t.v.ProgramID {
			return errDoubleSpend
		}
	}
	return nil
}

// checkDestination checks that the proof binds the recipient or the terms of the
// swap, and that the amount is at least the minimum deposit or more than the fee.
func (t *transaction) checkDestination() error {
	fees, destination := t.program.profile.Fees, shieldpool.Destination{Swap: t.Swap}
	switch {
	case t.Swap != nil && t.Inputs.PublicAmount >= 0:
		return t.v.Refuse(errInvalidAmount, "a swap takes its lamports out of the pool: want a negative amount")
	case t.Swap == nil:
		destination.Recipient = t.accounts[shieldpool.RoleRecipient].Key()
	}
	if t.Inputs.PublicAmount >= 0 {
		if destination.Recipient != t.accounts[shieldpool.RolePayer].Key() {
			return t.v.Refuse(bank.ErrInvalidArgument, "without a withdrawal the recipient must be the payer")
		}
		if t.Inputs.PublicAmount > 0 && t.Inputs.Gross() < fees.MinDeposit {
			return t.v.Refuse(errInvalidAmount, "the deposit is below the minimum")
		}
		return nil
	}
	if !t.program.profile.BindsDestination(t.Inputs, destination) {
		return t.v.Refuse(errProofInvalid, "the proof is for another recipient or other terms")
	}
	if _, ok := fees.Net(t.Inputs.Gross()); !ok {
		return t.v.Refuse(errInvalidAmount, "the withdrawal is not more than its fee")
	}
	return nil
}

func (t *transaction) checkProof() error {
	if err := t.v.Consume(proofUnits); err != nil {
		return err
	}
	if !t.program.verifier.valid(t.Proof, t.Inputs) {
		return errProofVerificationFailed
	}
	return nil
}

// moveAmount moves the public amount. A deposit goes from the payer to the pool. A withdrawal goes
// from the pool to the treasury (the fee) and to the recipient or a new swap state.
func (t *transaction) moveAmount() error {
	gross, poolAccount := t.Inputs.Gross(), t.accounts[shieldpool.RolePool]
	switch {
	case t.Inputs.PublicAmount > 0:
		payer := t.accounts[shieldpool.RolePayer]
		return t.v.Invoke(system.NewTransferInstruction(gross, payer.Key(), poolAccount.Key()).Build())
	case t.Inputs.PublicAmount < 0:
		net, _ := t.program.profile.Fees.Net(gross)
		rent := t.v.Rent().Exemption(uint64(len(poolAccount.Data())))
		if gross > poolAccount.Lamports()-min(rent, poolAccount.Lamports()) {
			return t.v.Refuse(errConservation, "the withdrawal exceeds the pool's balance above its rent exemption")
		}
		to := t.accounts[shieldpool.RoleRecipient]
		if t.Swap != nil {
			to = t.accounts[shieldpool.RoleSwapState]
			if err := t.openSwap(to, net); err != nil {
				return err
			}
		}
		if err := poolAccount.SubLamports(gross); err != nil {
			return err
		}
		if err := t.accounts[shieldpool.RoleTreasury].AddLamports(gross - net); err != nil {
			return err
		}
		return to.AddLamports(net)
	default:
		return nil
	}
}

// openSwap creates the state of a swap of a number of lamports. The payer pays the
// account's rent. The caller adds the lamports.
func (t *transaction) openSwap(account *bank.AccountRef, lamports uint64) error {
	if err := t.v.Consume(swapUnits); err != nil {
		return err
	}
	if err := t.v.CreateAccount(t.accounts[shieldpool.RolePayer], account, shieldpool.SwapStateLength, t.v.ProgramID, t.swapState.seeds); err != nil {
		return err
	}
	bump := t.swapState.seeds[len(t.swapState.seeds)-1][0]
	return account.SetData((&shieldpool.SwapState{
		Nullifier: t.Inputs.Nullifiers[0], Lamports: lamports,
		OutputMint: t.Swap.OutputMint, RecipientATA: t.Swap.RecipientATA, MinOutput: t.Swap.MinOutput,
		CreatedSlot: t.v.Slot(), TimeoutSlot: t.v.Slot() + t.program.profile.SwapTimeout, Bump: bump,
	}).Bytes())
}

func (t *transaction) spend() error {
	for i, role := range nullifierRoles {
		if !t.Inputs.HasNullifier(i) {
			continue
		}
		if err := t.v.CreateAccount(t.accounts[shieldpool.RolePayer], t.accounts[role], 0, t.v.ProgramID, t.nullifiers[i].seeds); err != nil {
			return err
		}
	}
	return nil
}

// appendLeaves appends the commitments. Their hashing waits until the tree is read or
// committed, so that a simulation does not pay for it.
func (t *transaction) appendLeaves() error {
	var leaves [][field]byte
	for _, leaf := range t.Inputs.Commitments {
		if leaf == ([field]byte{}) {
			continue
		}
		if err := t.v.Consume(appendUnits); err != nil {
			return err
		}
		leaves = append(leaves, leaf)
	}
	switch {
	case len(leaves) == 0:
		return nil
	case t.tree.NextIndex+uint64(len(leaves)) > 1<<merkle.Height:
		return errMerkleTreeFull
	}
	return t.accounts[shieldpool.RoleMerkleTree].SetDataLater(func() []byte {
		for _, leaf := range leaves {
			if err := t.tree.Append(leaf); err != nil {
				panic("pool program: append a leaf to a valid tree with room: " + err.Error())
			}
		}
		return t.tree.Bytes()
	})
}
