package bank

// Sizes returns the number of entries of everything that grows with the chain.
func (b *Bank) Sizes() map[string]int {
	b.leaderMu.Lock()
	defer b.leaderMu.Unlock()
	b.mu.RLock()
	defer b.mu.RUnlock()
	sizes := map[string]int{
		"blocks": len(b.chain), "blockhashes": len(b.hashes), "messages": len(b.messages),
		"signatures": len(b.bySignature), "accounts": len(b.accounts), "addresses": len(b.byAddress),
		"waiting": len(b.waiting.list) + len(b.waiting.hashes),
	}
	for _, versions := range b.accounts {
		sizes["account versions"] += len(versions)
	}
	for _, landed := range b.byAddress {
		sizes["transactions by address"] += len(landed)
	}
	for _, block := range b.chain {
		sizes["written accounts"] += len(block.written)
	}
	return sizes
}
