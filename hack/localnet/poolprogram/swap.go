package poolprogram

import (
	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/token"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// prepareSwapSol wraps a swap's lamports once. It takes no parameters, because anybody
// may send it, alone and repeatedly.
func (p *program) prepareSwapSol(v *bank.Invocation) error {
	if len(v.Data) != 1 {
		return v.Refuse(errInvalidInstructionData, "PrepareSwapSol takes no data but its tag")
	}
	accounts, err := roles(v, 0, p.profile.Accounts.PrepareSwapSol)
	if err != nil {
		return err
	}
	stateAccount, wsol := accounts[shieldpool.RoleSwapState], accounts[shieldpool.RoleSwapWSOL]
	state, err := readSwapState(v, stateAccount)
	if err != nil {
		return err
	}
	if _, err := stateTokens(v, wsol, stateAccount.Key(), solana.WrappedSol); err != nil {
		return err
	}
	if state.wrapped {
		v.Log("Program log: Already wrapped")
		return nil
	}
	state.wrapped = true
	if err := stateAccount.SetData(state.bytes()); err != nil {
		return err
	}
	if err := stateAccount.MoveLamports(wsol, state.Lamports); err != nil {
		return err
	}
	return v.Invoke(token.NewSyncNativeInstruction(wsol.Key()).Build())
}

// stateTokens returns the balance of a token account, which must be the associated
// token account of the swap's state for the mint.
func stateTokens(v *bank.Invocation, account *bank.AccountRef, state, mint solana.PublicKey) (uint64, error) {
	address, err := associatedTokenAccount(v, state, mint)
	if err != nil {
		return 0, err
	}
	if account.Key() != address {
		return 0, bank.ErrInvalidSeeds
	}
	return tokenBalance(v, account, mint, state)
}

// execution is one running ExecuteSwap.
type execution struct {
	program      *program
	v            *bank.Invocation
	accounts     map[shieldpool.Role]*bank.AccountRef
	stateAddress programAddress
	state        *swapState
	// wsol and recipient are the balances of the state's wrapped SOL and of the
	// recipient's tokens before the router runs, in the smallest unit of each.
	wsol, recipient uint64
}

// executeSwap calls a router to swap the state's lamports, moves the output to the recipient, and
// closes the state and its token accounts. The caller chooses the router. The program checks only
// that all lamports are taken and that the recipient gets the minimum.
func (p *program) executeSwap(v *bank.Invocation) error {
	x := &execution{program: p, v: v}
	for _, step := range []func() error{x.checkState, x.checkTokens, x.route, x.checkConsumed, x.pay, x.close} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (x *execution) checkState() (err error) {
	if len(x.v.Data) < 1+field {
		return x.v.Refuse(errInvalidInstructionData, "want tag, nullifier and the router's data")
	}
	nullifier := x.v.Data[1 : 1+field]
	if x.accounts, err = roles(x.v, 0, x.program.profile.Accounts.ExecuteSwap); err != nil {
		return err
	}
	account := x.accounts[shieldpool.RoleSwapState]
	if x.stateAddress, err = x.program.deriveState(x.v, x.accounts[shieldpool.RolePool], nullifier); err != nil {
		return err
	}
	if account.Key() != x.stateAddress.key {
		return bank.ErrInvalidSeeds
	}
	if x.state, err = readSwapState(x.v, account); err != nil {
		return err
	}
	if !x.state.wrapped {
		// Without this check a stranger could send wrapped SOL to the state's account.
		// The swap would consume it, and the user's lamports would go to the payer.
		return x.v.Refuse(bank.ErrInvalidArgument, "the swap's lamports are not wrapped: PrepareSwapSol comes first")
	}
	if x.accounts[shieldpool.RoleRouterProgram].Key() == x.v.ProgramID {
		return x.v.Refuse(bank.ErrIncorrectProgramID, "the pool program is no router")
	}
	return nil
}

// deriveState derives the address of a swap's state from its pool and nullifier.
func (p *program) deriveState(v *bank.Invocation, poolAccount *bank.AccountRef, nullifier []byte) (programAddress, error) {
	pool, err := p.byAddress(v, poolAccount.Key())
	if err != nil {
		return programAddress{}, err
	}
	address, err := p.derive(pool, p.profile.Seeds.SwapState, nullifier)
	if err != nil {
		return address, bank.ErrInvalidSeeds
	}
	return address, v.Consume(address.searchUnits())
}

func (x *execution) checkTokens() (err error) {
	if x.wsol, err = stateTokens(x.v, x.accounts[shieldpool.RoleSwapWSOL], x.stateAddress.key, solana.WrappedSol); err != nil {
		return err
	}
	if _, err = stateTokens(x.v, x.accounts[shieldpool.RoleSwapOutput], x.stateAddress.key, x.state.OutputMint); err != nil {
		return err
	}
	recipient := x.accounts[shieldpool.RoleRecipientATA]
	if recipient.Key() != x.state.RecipientATA {
		return x.v.Refuse(bank.ErrInvalidArgument, "the recipient's token account is not the one that the proof names")
	}
	x.recipient, err = tokenBalance(x.v, recipient, x.state.OutputMint, solana.PublicKey{})
	return err
}

// route calls the router with the accounts that follow the program's own. The state
// signs. All other accounts have the rights that they have in the transaction.
func (x *execution) route() error {
	first := len(x.program.profile.Accounts.ExecuteSwap)
	metas := make([]*solana.AccountMeta, 0, x.v.Accounts()-first)
	for i := first; i < x.v.Accounts(); i++ {
		account, err := x.v.Account(i)
		if err != nil {
			return err
		}
		metas = append(metas, &solana.AccountMeta{
			PublicKey: account.Key(), IsWritable: account.IsWritable(),
			IsSigner: account.IsSigner() || account.Key() == x.stateAddress.key,
		})
	}
	router := x.accounts[shieldpool.RoleRouterProgram].Key()
	return x.v.Invoke(solana.NewInstruction(router, metas, x.v.Data[1+field:]), x.stateAddress.seeds)
}

func (x *execution) checkConsumed() error {
	left, err := tokenBalance(x.v, x.accounts[shieldpool.RoleSwapWSOL], solana.WrappedSol, x.stateAddress.key)
	if err != nil {
		return err
	}
	if x.wsol-min(left, x.wsol) < x.state.Lamports {
		return x.v.Refuse(errInputNotConsumed, "the router did not take all of the swap's wrapped SOL")
	}
	return nil
}

// pay moves the whole output, donated tokens included, to the recipient. It checks
// that the recipient's balance has grown by the user's minimum.
func (x *execution) pay() error {
	mint := x.state.OutputMint
	output, recipient := x.accounts[shieldpool.RoleSwapOutput], x.accounts[shieldpool.RoleRecipientATA]
	got, err := tokenBalance(x.v, output, mint, x.stateAddress.key)
	if err != nil {
		return err
	}
	if got > 0 {
		transfer := token.NewTransferInstruction(got, output.Key(), recipient.Key(), x.stateAddress.key, nil).Build()
		if err := x.v.Invoke(transfer, x.stateAddress.seeds); err != nil {
			return err
		}
	}
	now, err := tokenBalance(x.v, recipient, mint, solana.PublicKey{})
	if err != nil {
		return err
	}
	if now-min(now, x.recipient) < x.state.MinOutput {
		return x.v.Refuse(errOutputBelowMinimum, "the recipient got less than the user's minimum")
	}
	return nil
}

// close closes the state and its token accounts. The payer of this transaction gets
// their rents and all lamports that others sent to them.
func (x *execution) close() error {
	payer := x.accounts[shieldpool.RolePayer]
	for _, role := range []shieldpool.Role{shieldpool.RoleSwapWSOL, shieldpool.RoleSwapOutput} {
		if err := closeTokens(x.v, x.accounts[role], payer, x.stateAddress); err != nil {
			return err
		}
	}
	return x.accounts[shieldpool.RoleSwapState].Close(payer)
}

// closeSwapState returns all lamports of a swap to the user's wallet after the swap's
// timeout. The payer gets nothing, because anybody may send the instruction.
func (p *program) closeSwapState(v *bank.Invocation) error {
	if len(v.Data) != 1 {
		return v.Refuse(errInvalidInstructionData, "CloseSwapState takes no data but its tag")
	}
	order := p.profile.Accounts.CloseSwapState
	accounts, err := roles(v, 0, order)
	if err != nil {
		return err
	}
	account, wallet := accounts[shieldpool.RoleSwapState], accounts[shieldpool.RoleRecipient]
	state, err := readSwapState(v, account)
	if err != nil {
		return err
	}
	address, err := p.deriveState(v, accounts[shieldpool.RolePool], state.Nullifier[:])
	if err != nil {
		return err
	}
	if account.Key() != address.key {
		return bank.ErrInvalidSeeds
	}
	recipient, err := associatedTokenAccount(v, wallet.Key(), state.OutputMint)
	if err != nil {
		return err
	}
	if recipient != state.RecipientATA {
		return v.Refuse(bank.ErrInvalidSeeds, "the swap's recipient account is not the wallet's associated token account")
	}
	if v.Slot() < state.TimeoutSlot {
		return v.Refuse(errSwapNotReady, "the swap's timeout slot is not reached")
	}
	if state.wrapped || v.Accounts() > len(order) {
		if err := p.unwrap(v, len(order), wallet, address); err != nil {
			return err
		}
	}
	return account.Close(wallet)
}

// unwrap closes the state's account of wrapped SOL and moves its lamports to the wallet.
// This account and the token program follow the accounts of an unwrapped refund.
func (p *program) unwrap(v *bank.Invocation, first int, wallet *bank.AccountRef, state programAddress) error {
	accounts, err := roles(v, first, p.profile.Accounts.CloseWrapped)
	if err != nil {
		return err
	}
	wsol := accounts[shieldpool.RoleSwapWSOL]
	if _, err := stateTokens(v, wsol, state.key, solana.WrappedSol); err != nil {
		return err
	}
	return closeTokens(v, wsol, wallet, state)
}
