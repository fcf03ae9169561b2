package poolprogram

import (
	"bytes"
	"encoding/binary"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/relay/merkle"
)

// Offsets in the Merkle tree account, as in protocol.md. The root history is
// followed by the index of its newest root, u64 little-endian.
const (
	field       = 32
	nextIndexAt = 32
	frontierAt  = nextIndexAt + 8
	rootAt      = frontierAt + merkle.Height*field
	historyAt   = rootAt + field

	// historyPart is the number of roots that search reads at once.
	historyPart = 64
	capacity    = uint64(1) << merkle.Height
)

// tree is the Merkle tree account of a running instruction. It reads only the data
// that it needs, because a root history can be megabytes long.
type tree struct {
	account *bank.AccountRef
	// historyLength is the length of the root history.
	historyLength int
	// next is the index of the next leaf, and rootIndex is the index of the newest root.
	next      uint64
	rootIndex int
}

// openTree reads the tree's indices. It returns ErrInvalidAccountData for data that is not a tree.
func (p *program) openTree(account *bank.AccountRef) (*tree, error) {
	t := &tree{account: account, historyLength: p.profile.RootHistory}
	if account.Length() < p.profile.TreeLength() {
		return nil, bank.ErrInvalidAccountData
	}
	t.next = binary.LittleEndian.Uint64(account.Read(nextIndexAt, 8))
	newest := binary.LittleEndian.Uint64(account.Read(t.rootOffset(t.historyLength), 8))
	if newest >= uint64(t.historyLength) || t.next > capacity { //nolint:gosec // a length is not negative
		return nil, bank.ErrInvalidAccountData
	}
	t.rootIndex = int(newest) //nolint:gosec // below the length of the root history
	return t, nil
}

// rootOffset is the offset in the account's data of the root at an index of the history.
func (t *tree) rootOffset(index int) int { return historyAt + field*index }

// hasRoot reports whether a root is in the history, and returns false for the all-zero root. The
// search goes from the newest root to the oldest, because clients prove against recent roots.
func (t *tree) hasRoot(root [field]byte) bool {
	if root == ([field]byte{}) {
		return false
	}
	return t.search(root, 0, t.rootIndex+1) || t.search(root, t.rootIndex+1, t.historyLength)
}

// search reports whether a root is at the indices first to last-1 of the history. It
// starts at last-1.
func (t *tree) search(root [field]byte, first, last int) bool {
	for last > first {
		from := max(first, last-historyPart)
		part := t.account.Read(t.rootOffset(from), field*(last-from))
		for at := len(part) - field; at >= 0; at -= field {
			if [field]byte(part[at:]) == root {
				return true
			}
		}
		last = from
	}
	return false
}

// append adds leaves. The root after each leaf goes to the next index of the history.
// The hashing is deferred until the account is read or committed.
func (t *tree) append(leaves []fr.Element) error {
	if t.next+uint64(len(leaves)) > capacity {
		return errMerkleTreeFull
	}
	var frontier [merkle.Height]fr.Element
	raw := t.account.Read(frontierAt, merkle.Height*field)
	for i := range frontier {
		var err error
		if frontier[i], err = merkle.FromBytes([field]byte(raw[i*field:])); err != nil {
			return bank.ErrInvalidAccountData
		}
	}
	next, rootIndex := t.next, t.rootIndex
	return t.account.WriteLater(func() []bank.Patch {
		return t.patches(next, rootIndex, &frontier, leaves)
	})
}

// patches returns the changes of the account's data when the leaves are appended.
func (t *tree) patches(next uint64, rootIndex int, frontier *[merkle.Height]fr.Element, leaves []fr.Element) []bank.Patch {
	grown, err := merkle.RestoreTree(next, *frontier)
	if err != nil {
		panic("pool program: restore a valid tree: " + err.Error())
	}
	var patches []bank.Patch
	var root [field]byte
	for i := range leaves {
		if err := grown.Append(&leaves[i]); err != nil {
			panic("pool program: append a leaf to a tree with room: " + err.Error())
		}
		e := grown.Root()
		root = merkle.Bytes(&e)
		rootIndex = (rootIndex + 1) % t.historyLength
		patches = append(patches, bank.Patch{Offset: t.rootOffset(rootIndex), Data: bytes.Clone(root[:])})
	}
	head := binary.LittleEndian.AppendUint64(nil, grown.NextIndex())
	for _, e := range grown.Frontier() {
		raw := merkle.Bytes(&e)
		head = append(head, raw[:]...)
	}
	head = append(head, root[:]...)
	newest := binary.LittleEndian.AppendUint64(nil, uint64(rootIndex)) //nolint:gosec // below the length of the root history
	return append(patches,
		bank.Patch{Offset: nextIndexAt, Data: head},
		bank.Patch{Offset: t.rootOffset(t.historyLength), Data: newest})
}
