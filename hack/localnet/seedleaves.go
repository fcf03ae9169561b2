package localnet

import (
	"bytes"
	"crypto/sha512"
	"encoding/binary"
	"fmt"
	"math/bits"
	"runtime"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/gagliardetto/solana-go"
	"golang.org/x/sync/errgroup"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/relay/merkle"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

const (
	// seededInBlock is the number of transactions in a seeded block: about as many as land in a slot
	// while the root history bounds them.
	seededInBlock = 16
	// seedPiece is the height of the subtrees that are hashed concurrently.
	seedPiece = 12
	// seededUnits is the compute limit in seeded transactions.
	seededUnits = 200_000
)

// seed is a pool's history with a number of leaves, two in a transaction. Its zero value has none.
type seed struct {
	leaves   uint64
	accounts map[solana.PublicKey]bank.Account
	past     bank.Past
	// raw is a transaction, and data is where the data of its instruction begins in it.
	raw  []byte
	data int
}

func newSeed(o Options) (*seed, error) {
	s := &seed{leaves: o.SeedLeaves}
	if s.leaves == 0 {
		return s, nil
	}
	if !o.Initialised || s.leaves > 1<<merkle.Height || len(o.Profile.Mints) == 0 {
		return nil, fmt.Errorf("want an initialised pool (-initialise) and at most 2^32 leaves, received %d", s.leaves)
	}
	pool, err := o.Profile.Pool(o.Profile.Mints[0])
	if err != nil {
		return nil, err
	}
	payer := wellKnownKey("relaypool local chain seed").PublicKey()
	if err := s.makeTemplate(pool, payer); err != nil {
		return nil, err
	}
	tree, err := s.account(o.Profile)
	if err != nil {
		return nil, err
	}
	owned := func(data []byte) bank.Account {
		return bank.Account{Owner: o.Profile.ProgramID, Data: data, Lamports: bank.RentExemption(uint64(len(data)))}
	}
	s.accounts = map[solana.PublicKey]bank.Account{
		pool.Address: owned(tree.Authority[:]), pool.MerkleTree: owned(tree.Bytes()), pool.Treasury: owned(nil),
	}
	s.past = bank.Past{
		Transactions: (s.leaves + 1) / 2, PerBlock: seededInBlock, Make: s.transaction, Number: s.number,
		Keys: []solana.PublicKey{payer, pool.Address, pool.MerkleTree, pool.Treasury, o.Profile.ProgramID},
	}
	return s, nil
}

func (s *seed) blocks() uint64 { return (s.past.Transactions + seededInBlock - 1) / seededInBlock }

// makeTemplate makes the transaction from which the others differ in their leaves, nullifiers and
// signatures alone. Their nullifiers have no accounts: to derive the addresses of a million
// would take longer than all the rest.
func (s *seed) makeTemplate(pool *shieldpool.Pool, payer solana.PublicKey) error {
	call := &shieldpool.Call{Proof: make([]byte, shieldpool.ProofLength), Inputs: &shieldpool.PublicInputs{
		MintAddress: pool.Mint.Field, Nullifiers: [2][32]byte{seeded("nullifier", 0), seeded("nullifier", 1)},
	}}
	call.Recipient = payer
	tx, err := pool.Transaction(payer, call, shieldpool.Compute{Limit: seededUnits}, GenesisHash, nil)
	if err != nil {
		return err
	}
	tx.Signatures = make([]solana.Signature, 1)
	if s.raw, err = tx.MarshalBinary(); err != nil {
		return err
	}
	data, err := pool.Profile.Data(call)
	s.data = bytes.Index(s.raw, data)
	return err
}

// transaction makes a transaction of the history.
func (s *seed) transaction(number uint64) *bank.Transaction {
	const nullifiers, commitments = 1 + shieldpool.ProofLength + 104, 1 + shieldpool.ProofLength + 168
	raw := slices.Clone(s.raw)
	signature := seededSignature(number)
	copy(raw[1:], signature[:])
	for i := range uint64(2) {
		nullifier, leaf := seeded("nullifier", 2*number+i), seeded("leaf", 2*number+i)
		copy(raw[s.data+nullifiers+32*int(i):], nullifier[:])
		if 2*number+i < s.leaves {
			copy(raw[s.data+commitments+32*int(i):], leaf[:])
		}
	}
	tx, err := bank.DecodeTransaction(raw)
	if err != nil {
		panic(fmt.Sprintf("seeded transaction %d: %v", number, err)) // only fixed sizes were changed in a valid one
	}
	return tx
}

// seededSignature begins with the transaction's number, by which number finds it. It is not valid.
func seededSignature(number uint64) solana.Signature {
	n := binary.BigEndian.AppendUint64(nil, number)
	signature := sha512.Sum512(append([]byte("signature"), n...))
	copy(signature[:], n)
	return signature
}

func (s *seed) number(signature solana.Signature) (number uint64, ok bool) {
	number = binary.BigEndian.Uint64(signature[:])
	return number, number < s.past.Transactions && signature == seededSignature(number)
}

// seeded makes a field element.
func seeded(kind string, number uint64) [32]byte {
	digest := sha512.Sum512_256(binary.BigEndian.AppendUint64([]byte(kind), number))
	digest[0] &= 0x1f // below the field's modulus
	return digest
}

// account returns the tree account with all leaves. The newest are appended as the program does,
// which fills the root history.
func (s *seed) account(profile *shieldpool.Profile) (*shieldpool.TreeAccount, error) {
	account := profile.NewTree(wellKnownKey("relaypool local chain admin").PublicKey())
	bulk := s.leaves - min(s.leaves, uint64(profile.RootHistory)) //nolint:gosec // a number of roots
	frontier, err := seededFrontier(bulk >> seedPiece)
	if err != nil {
		return nil, err
	}
	tree, err := merkle.RestoreTree(bulk>>seedPiece<<seedPiece, frontier)
	for err == nil && tree.NextIndex() < bulk {
		err = appendSeeded(tree, tree.NextIndex())
	}
	if err != nil {
		return nil, err
	}
	account.NextIndex = bulk
	for i, node := range tree.Frontier() {
		account.Frontier[i] = merkle.Bytes(&node)
	}
	for err == nil && account.NextIndex < s.leaves {
		err = account.Append(seeded("leaf", account.NextIndex))
	}
	return account, err
}

func appendSeeded(tree *merkle.Tree, number uint64) error {
	leaf, err := merkle.FromBytes(seeded("leaf", number))
	if err == nil {
		err = tree.Append(&leaf)
	}
	return err
}

// seededFrontier returns the frontier after so many pieces of 2^seedPiece leaves.
func seededFrontier(pieces uint64) (frontier [merkle.Height]fr.Element, err error) {
	roots := make([]fr.Element, pieces)
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for piece := range pieces {
		group.Go(func() error {
			tree := merkle.NewTree()
			for number := piece << seedPiece; number < (piece+1)<<seedPiece; number++ {
				if err := appendSeeded(tree, number); err != nil {
					return err
				}
			}
			roots[piece] = tree.Frontier()[seedPiece]
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return frontier, err
	}
	for piece, node := range roots {
		level := seedPiece + bits.TrailingZeros64(^uint64(piece))
		for i := seedPiece; i < level; i++ {
			node = merkle.Hash2(&frontier[i], &node) //nolint:gosec // level is at most the height
		}
		frontier[min(level, merkle.Height-1)] = node
	}
	return frontier, nil
}
