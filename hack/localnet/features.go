package localnet

import (
	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/bank"
)

// TransactionV1Gate is the feature gate of transactions of version 1 on every cluster.
func TransactionV1Gate() solana.PublicKey {
	return solana.MustPublicKeyFromBase58("txv1aq4pp281K9um3tnPgkfX8UqtFT6wcVW3hNezGLL")
}

// FeatureAccount is the account of a feature gate: 1 and the slot of its activation, or zeros
// while it is pending. The chain executes transactions of version 1 in any case.
func FeatureAccount(active bool) bank.Account {
	data := make([]byte, 9)
	if active {
		data[0] = 1 // from slot 0 on
	}
	return bank.Account{
		Lamports: bank.RentExemption(uint64(len(data))), Data: data,
		Owner: solana.MustPublicKeyFromBase58("Feature111111111111111111111111111111111111"),
	}
}
