package refs

import (
	"fmt"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// addPayer adds to the facts the fee payer of the key n, which has the address. If an earlier value is
// a key of the same fee payer, addPayer adds a problem instead. payers are the earlier values by
// address.
func addPayer(facts *Facts, payers map[string]namedValue, n namedValue, address string) {
	if first, ok := payers[address]; ok {
		facts.Problems = append(facts.Problems, duplicateKey(n, first, address))
		return
	}
	payers[address] = n
	facts.Payers = append(facts.Payers, Payer{Secret: n.name, Key: n.key, Address: address})
}

func duplicateKey(n, first namedValue, address string) Problem {
	p := n.problem(v1alpha1.ReasonDuplicateKey, v1alpha1.ReasonDuplicateKey, fmt.Sprintf(
		"contains in its key %s the fee payer %s, which %s already names in Secret %s, key %s: name each fee payer once, or the fleet would count its funds twice",
		n.key, address, first.field, first.name, first.key))
	return *p
}

// addDuplicateSigners adds a problem for each signer whose address is also that of a key in a
// Secret.
func addDuplicateSigners(facts *Facts, payers map[string]namedValue, signers []v1alpha1.Signer) {
	for i := range signers {
		n, ok := payers[signers[i].Address]
		if !ok {
			continue
		}
		facts.Problems = append(facts.Problems, *n.problem(v1alpha1.ReasonDuplicateKey, v1alpha1.ReasonDuplicateKey, fmt.Sprintf(
			"contains in its key %s the fee payer %s, which spec.feePayers.signers[%s] already names: name each fee payer once, or the fleet would count its funds twice",
			n.key, signers[i].Address, signers[i].Name)))
	}
}
