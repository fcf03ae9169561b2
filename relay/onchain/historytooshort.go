package onchain

// historyTooShort reports whether the first available block is after the slot of a transaction's
// blockhash. The transaction may then have landed in a block that the endpoint has forgotten, so
// its absence does not count as its death.
func (l *SearchResult) historyTooShort(blockhashSlot uint64) bool {
	return l.FirstAvailable > blockhashSlot
}
