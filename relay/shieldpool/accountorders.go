package shieldpool

import (
	"fmt"

	"github.com/gagliardetto/solana-go"
)

// Role is the name of an account in the program's instructions.
type Role string

// These are the roles of accounts in the program's instructions.
const (
	RolePayer         Role = "payer"
	RolePool          Role = "pool"
	RoleTreasury      Role = "treasury"
	RoleMerkleTree    Role = "merkle_tree"
	RoleNullifier0    Role = "nullifier0"
	RoleNullifier1    Role = "nullifier1"
	RoleRecipient     Role = "recipient"
	RoleSwapState     Role = "swap_state"
	RoleSystemProgram Role = "system_program"

	// RoleSwapWSOL and RoleSwapOutput are the swap state's own associated token
	// accounts: of wrapped SOL and of the output mint.
	RoleSwapWSOL      Role = "swap_wsol_ata" //nolint:gosec // the name of a role, not a credential
	RoleSwapOutput    Role = "swap_output_ata"
	RoleRecipientATA  Role = "recipient_ata"
	RoleTokenProgram  Role = "token_program"
	RoleRouterProgram Role = "router_program"
)

// AccountRole is one entry of an instruction's account list.
type AccountRole struct {
	Role             Role
	Signer, Writable bool
}

// AccountOrders are the account lists of the program's instructions.
type AccountOrders struct {
	Transact, TransactSwap, Initialize []AccountRole
	// PrepareSwapSol wraps a swap's lamports. ExecuteSwap swaps them; the router's own
	// accounts are appended to its list.
	PrepareSwapSol, ExecuteSwap []AccountRole
	// CloseSwapState refunds a swap. If its lamports are wrapped, CloseWrapped is appended.
	CloseSwapState, CloseWrapped []AccountRole
}

func defaultAccountOrders() AccountOrders {
	transact := func(destination Role) []AccountRole {
		return []AccountRole{
			{Role: RolePayer, Signer: true, Writable: true},
			{Role: RolePool, Writable: true},
			{Role: RoleTreasury, Writable: true},
			{Role: RoleMerkleTree, Writable: true},
			{Role: RoleNullifier0, Writable: true},
			{Role: RoleNullifier1, Writable: true},
			{Role: destination, Writable: true},
			{Role: RoleSystemProgram},
		}
	}
	return AccountOrders{
		Transact:     transact(RoleRecipient),
		TransactSwap: transact(RoleSwapState),
		Initialize: []AccountRole{
			{Role: RolePayer, Signer: true, Writable: true},
			{Role: RolePool, Writable: true},
			{Role: RoleMerkleTree, Writable: true},
			{Role: RoleTreasury, Writable: true},
			{Role: RoleSystemProgram},
		},
		PrepareSwapSol: []AccountRole{
			{Role: RolePayer, Signer: true, Writable: true},
			{Role: RoleSwapState, Writable: true},
			{Role: RoleSwapWSOL, Writable: true},
			{Role: RoleTokenProgram},
			{Role: RoleSystemProgram},
		},
		ExecuteSwap: []AccountRole{
			{Role: RolePayer, Signer: true, Writable: true},
			{Role: RolePool},
			{Role: RoleSwapState, Writable: true},
			{Role: RoleSwapWSOL, Writable: true},
			{Role: RoleSwapOutput, Writable: true},
			{Role: RoleRecipientATA, Writable: true},
			{Role: RoleTokenProgram},
			{Role: RoleRouterProgram},
		},
		CloseSwapState: []AccountRole{
			{Role: RolePayer, Signer: true, Writable: true},
			{Role: RolePool, Writable: true},
			{Role: RoleSwapState, Writable: true},
			{Role: RoleRecipient, Writable: true},
			{Role: RoleSystemProgram},
		},
		CloseWrapped: []AccountRole{
			{Role: RoleSwapWSOL, Writable: true},
			{Role: RoleTokenProgram},
		},
	}
}

// metas returns the accounts in the order of the roles.
func metas(order []AccountRole, a Addresses) (solana.AccountMetaSlice, error) {
	out := make(solana.AccountMetaSlice, len(order))
	for i, r := range order {
		key, ok := a[r.Role]
		if !ok {
			return nil, fmt.Errorf("the account list names role %q, for which there is no address", r.Role)
		}
		out[i] = &solana.AccountMeta{PublicKey: key, IsSigner: r.Signer, IsWritable: r.Writable}
	}
	return out, nil
}
