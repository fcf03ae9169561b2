package poolprogram

import (
	"bytes"
	"encoding/binary"

	"github.com/consensys/gnark-crypto/ecc/bn254/fr"

	"github.com/relaypool/relaypool/hack/localnet/bank"
	"github.com/relaypool/relaypool/relay/merkle"
)

// Offsets of the Merkle tree account, as protocol.md lays them down. Behind
// the ring stands the index of its newest root, u64 little-endian.
const (
	field       = 32
	nextIndexAt = 32
	frontierAt  = nextIndexAt + 8
	rootAt      = frontierAt + merkle.Height*field
	ringAt      = rootAt + field

	// ringPart is how many roots are looked at in one piece.
	ringPart = 64
	capacity = uint64(1) << merkle.Height
)

// tree is the Merkle tree account while an instruction runs. It touches only
// what it needs of the data, because a ring can be megabytes long.
type tree struct {
	account *bank.AccountRef
	// ring is its length in roots.
	ring      int
	next      uint64
	rootIndex int
}

// openTree reads the tree's indices. Data that is not a tree's is
// InvalidAccountData.
func (p *program) openTree(account *bank.AccountRef) (*tree, error) {
	t := &tree{account: account, ring: p.profile.RootHistory}
	if account.Length() < p.profile.TreeLength() {
		return nil, bank.ErrInvalidAccountData
	}
	t.next = binary.LittleEndian.Uint64(account.Read(nextIndexAt, 8))
	newest := binary.LittleEndian.Uint64(account.Read(t.slotAt(t.ring), 8))
	if newest >= uint64(t.ring) || t.next > capacity { //nolint:gosec // a profile's ring is not negative
		return nil, bank.ErrInvalidAccountData
	}
	t.rootIndex = int(newest) //nolint:gosec // below the ring's length
	return t, nil
}

// slotAt is the offset of a slot of the ring.
func (t *tree) slotAt(slot int) int { return ringAt + field*slot }

// knows reports whether the ring holds a root, which the all-zero one never
// is. It looks from the newest to the oldest, because clients prove on new
// ones.
func (t *tree) knows(root [field]byte) bool {
	if root == ([field]byte{}) {
		return false
	}
	return t.holds(root, 0, t.rootIndex+1) || t.holds(root, t.rootIndex+1, t.ring)
}

// holds looks for a root in the slots from first up to last, last not
// included, backwards.
func (t *tree) holds(root [field]byte, first, last int) bool {
	for last > first {
		from := max(first, last-ringPart)
		part := t.account.Read(t.slotAt(from), field*(last-from))
		for at := len(part) - field; at >= 0; at -= field {
			if [field]byte(part[at:]) == root {
				return true
			}
		}
		last = from
	}
	return false
}

// append adds leaves: each writes its root into the next slot of the ring. The
// hashing waits until somebody needs to see the account.
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

// patches gives what the account holds otherwise once the leaves are in.
func (t *tree) patches(next uint64, rootIndex int, frontier *[merkle.Height]fr.Element, leaves []fr.Element) []bank.Patch {
	grown, err := merkle.RestoreTree(next, *frontier)
	if err != nil {
		panic("pool program: a tree that was checked cannot be restored: " + err.Error())
	}
	var patches []bank.Patch
	var root [field]byte
	for i := range leaves {
		if err := grown.Append(&leaves[i]); err != nil {
			panic("pool program: a tree with room takes no leaf: " + err.Error())
		}
		e := grown.Root()
		root = merkle.Bytes(&e)
		rootIndex = (rootIndex + 1) % t.ring
		patches = append(patches, bank.Patch{Offset: t.slotAt(rootIndex), Data: bytes.Clone(root[:])})
	}
	head := binary.LittleEndian.AppendUint64(nil, grown.NextIndex())
	for _, e := range grown.Frontier() {
		raw := merkle.Bytes(&e)
		head = append(head, raw[:]...)
	}
	head = append(head, root[:]...)
	newest := binary.LittleEndian.AppendUint64(nil, uint64(rootIndex)) //nolint:gosec // below the ring's length
	return append(patches,
		bank.Patch{Offset: nextIndexAt, Data: head},
		bank.Patch{Offset: t.slotAt(t.ring), Data: newest})
}
