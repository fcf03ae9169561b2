package contract

// Genesis hashes of the public clusters.
const (
	genesisMainnet = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"
	genesisDevnet  = "EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG"
	genesisTestnet = "4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY"
)

// GenesisHash returns the genesis hash, in base58, of the cluster with that name:
// mainnet-beta, devnet or testnet. Anything else is treated as a hash and returned
// unchanged.
func GenesisHash(cluster string) string {
	switch cluster {
	case "mainnet-beta":
		return genesisMainnet
	case "devnet":
		return genesisDevnet
	case "testnet":
		return genesisTestnet
	default:
		return cluster
	}
}
