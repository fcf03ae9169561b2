package commitments

// Leaf is one commitment of the tree: its place, counted from 0, and its value,
// a field element, big-endian.
type Leaf struct {
	Index      uint64
	Commitment [32]byte
}
