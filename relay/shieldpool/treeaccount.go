package shieldpool

import (
	"encoding/binary"
	"fmt"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/merkle"
)

// Offsets of the Merkle tree account. The root's offset was observed; the others are inferred, and
// the self-check confirms them.
const (
	treeNextIndexAt = 32
	treeFrontierAt  = 40
	treeRootAt      = treeFrontierAt + merkle.Height*32
	treeHistoryAt   = treeRootAt + 32
)

// TreeAccount is the data of the Merkle tree account.
type TreeAccount struct {
	Authority solana.PublicKey
	// NextIndex is the number of leaves.
	NextIndex uint64
	Frontier  [merkle.Height][32]byte
	Root      [32]byte
	// History is the root history, a ring buffer; RootIndex is the index of the newest root.
	History   [][32]byte
	RootIndex uint64
}

// TreeLength is the size of the Merkle tree account's data in bytes.
func (p *Profile) TreeLength() int { return treeHistoryAt + 32*p.RootHistory + 8 }

// ParseTree decodes the Merkle tree account. It refuses data of another length: then the program
// keeps another number of roots than the profile says, and the self-check would not notice this
// while the tree is empty. It also refuses a root index outside the root history and a next index
// above the capacity.
func (p *Profile) ParseTree(data []byte) (*TreeAccount, error) {
	if len(data) != p.TreeLength() {
		return nil, fmt.Errorf("merkle tree account has %d bytes, expected %d for a root history of %d: check the profile's rootHistory", len(data), p.TreeLength(), p.RootHistory)
	}
	t := &TreeAccount{
		Authority: solana.PublicKeyFromBytes(data[:32]),
		NextIndex: binary.LittleEndian.Uint64(data[treeNextIndexAt:]),
		Root:      [32]byte(data[treeRootAt:treeHistoryAt]),
		History:   make([][32]byte, p.RootHistory),
		RootIndex: binary.LittleEndian.Uint64(data[treeHistoryAt+32*p.RootHistory:]),
	}
	for i := range t.Frontier {
		t.Frontier[i] = [32]byte(data[treeFrontierAt+32*i:])
	}
	for i := range t.History {
		t.History[i] = [32]byte(data[treeHistoryAt+32*i:])
	}
	if t.RootIndex >= uint64(len(t.History)) {
		return nil, fmt.Errorf("merkle tree's root index is %d, expected below the length of the root history %d", t.RootIndex, p.RootHistory)
	}
	if t.NextIndex > 1<<merkle.Height {
		return nil, fmt.Errorf("merkle tree's next index is above 2^%d leaves", merkle.Height)
	}
	return t, nil
}

// NewTree returns the tree account of a newly initialised pool.
func (p *Profile) NewTree(authority solana.PublicKey) *TreeAccount {
	empty := merkle.Zero(merkle.Height)
	t := &TreeAccount{Authority: authority, Root: merkle.Bytes(&empty), History: make([][32]byte, p.RootHistory)}
	t.History[0] = t.Root
	return t
}

// Bytes encodes the account's data.
func (t *TreeAccount) Bytes() []byte {
	b := make([]byte, 0, treeHistoryAt+32*len(t.History)+8)
	b = append(b, t.Authority[:]...)
	b = binary.LittleEndian.AppendUint64(b, t.NextIndex)
	for _, f := range t.Frontier {
		b = append(b, f[:]...)
	}
	b = append(b, t.Root[:]...)
	for _, h := range t.History {
		b = append(b, h[:]...)
	}
	return binary.LittleEndian.AppendUint64(b, t.RootIndex)
}

// Append adds a leaf as the program does. Each leaf adds one root to the root history.
func (t *TreeAccount) Append(leaf [32]byte) error {
	frontier, err := t.frontier()
	if err != nil {
		return err
	}
	tree, err := merkle.RestoreTree(t.NextIndex, frontier)
	if err != nil {
		return err
	}
	e, err := merkle.FromBytes(leaf)
	if err != nil {
		return err
	}
	if err := tree.Append(&e); err != nil {
		return err
	}
	next, root := tree.Frontier(), tree.Root()
	for i := range next {
		t.Frontier[i] = merkle.Bytes(&next[i])
	}
	t.NextIndex, t.Root = tree.NextIndex(), merkle.Bytes(&root)
	t.RootIndex = (t.RootIndex + 1) % uint64(len(t.History))
	t.History[t.RootIndex] = t.Root
	return nil
}
