package refs

import (
	"fmt"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// addPayer adds the fee payer with the address, which n names, to the facts. If an earlier value is a
// key of the same fee payer, it adds a problem instead. payers has the values by their payers'
// addresses.
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
