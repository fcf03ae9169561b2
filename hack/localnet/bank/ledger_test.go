package bank_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

const (
	confirmAfter  = 2
	finalizeAfter = 32
	faucetStart   = 1_000_000 * solana.LAMPORTS_PER_SOL
	walletStart   = solana.LAMPORTS_PER_SOL
	fee           = bank.LamportsPerSignature
)

// key derives a key pair from a name, so that every run uses the same keys.
func key(name string) solana.PrivateKey {
	seed := sha256.Sum256([]byte(name))
	return solana.PrivateKey(ed25519.NewKeyFromSeed(seed[:]))
}

func address(name string) solana.PublicKey { return key(name).PublicKey() }

// ledger is a bank with a funded wallet.
type ledger struct {
	*bank.Bank
	t      testing.TB
	wallet solana.PrivateKey
}

func options(programs ...bank.Program) bank.Options {
	return bank.Options{
		Genesis: sha256.Sum256([]byte("test")), ConfirmAfter: confirmAfter, FinalizeAfter: finalizeAfter, History: 1000,
		Clock:    func() time.Time { return time.Unix(1_700_000_000, 0) },
		Programs: append([]bank.Program{bank.SystemProgram(), bank.ComputeBudgetProgram()}, programs...),
		Faucet:   address("faucet"), FaucetLamports: faucetStart,
	}
}

func newLedger(t testing.TB, programs ...bank.Program) *ledger {
	t.Helper()
	b, err := bank.New(options(programs...))
	if err != nil {
		t.Fatal(err)
	}
	l := &ledger{Bank: b, t: t, wallet: key("wallet")}
	l.mustLand(key("faucet"), transferFrom("faucet", "wallet", walletStart))
	return l
}

func transferFrom(from, to string, lamports uint64) solana.Instruction {
	return system.NewTransferInstruction(lamports, address(from), address(to)).Build()
}

func (l *ledger) blockhash(c bank.Commitment) (hash solana.Hash) {
	l.Read(c, func(v bank.View) { hash, _ = v.LatestBlockhash() })
	return hash
}

// sign makes a signed transaction. The first signer pays the fee.
func (l *ledger) sign(hash solana.Hash, signers []solana.PrivateKey, instructions ...solana.Instruction) *bank.Transaction {
	l.t.Helper()
	tx, err := solana.NewTransaction(instructions, hash, solana.TransactionPayer(signers[0].PublicKey()))
	if err != nil {
		l.t.Fatal(err)
	}
	return l.signTransaction(tx, signers)
}

func (l *ledger) signTransaction(tx *solana.Transaction, signers []solana.PrivateKey) *bank.Transaction {
	l.t.Helper()
	if _, err := tx.Sign(func(of solana.PublicKey) *solana.PrivateKey {
		for i := range signers {
			if signers[i].PublicKey() == of {
				return &signers[i]
			}
		}
		return nil
	}); err != nil {
		l.t.Fatal(err)
	}
	raw, err := tx.MarshalBinary()
	if err != nil {
		l.t.Fatal(err)
	}
	decoded, err := bank.DecodeTransaction(raw)
	if err != nil {
		l.t.Fatal(err)
	}
	if !decoded.VerifySignatures() {
		l.t.Fatal("a signed transaction does not verify")
	}
	return decoded
}

func (l *ledger) mustLand(payer solana.PrivateKey, instructions ...solana.Instruction) *bank.Transaction {
	l.t.Helper()
	tx := l.sign(l.blockhash(bank.Processed), []solana.PrivateKey{payer}, instructions...)
	if landed, err := l.Submit(tx); !landed || err != nil {
		l.t.Fatalf("transaction landed %v with error %v, want it to succeed", landed, err)
	}
	return tx
}

func (l *ledger) balance(c bank.Commitment, of solana.PublicKey) (lamports uint64) {
	l.Read(c, func(v bank.View) {
		if a := v.Account(of); a != nil {
			lamports = a.Lamports
		}
	})
	return lamports
}

func (l *ledger) meta(signature solana.Signature) (meta bank.Meta) {
	l.t.Helper()
	l.Read(bank.Processed, func(v bank.View) {
		landed := v.Transaction(signature)
		if landed == nil {
			l.t.Fatal("the transaction is not in the history")
		}
		meta = landed.Meta
	})
	return meta
}

// wire is the error as an RPC client receives it, or "null" for a nil error.
func wire(t testing.TB, err *bank.TransactionError) string {
	t.Helper()
	raw, marshalErr := json.Marshal(err)
	if marshalErr != nil {
		t.Fatal(marshalErr)
	}
	return string(raw)
}

func unitLimit(units uint32) solana.Instruction {
	return solana.NewInstruction(solana.ComputeBudget, nil, binary.LittleEndian.AppendUint32([]byte{2}, units))
}

func unitPrice(microLamports uint64) solana.Instruction {
	return solana.NewInstruction(solana.ComputeBudget, nil, binary.LittleEndian.AppendUint64([]byte{3}, microLamports))
}
