package config

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/relay/commandline"
)

func (s Serve) lookupTable() (solana.PublicKey, error) {
	if s.LookupTable == "" {
		return solana.PublicKey{}, nil
	}
	table, err := solana.PublicKeyFromBase58(s.LookupTable)
	if err != nil || table.IsZero() {
		return solana.PublicKey{}, commandline.Problem("lookup-table", "expected 32 bytes in base58, received %d characters that are not", len(s.LookupTable))
	}
	return table, nil
}
