package refs

import (
	"fmt"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

func duplicateKey(n, first namedValue, address string) Problem {
	p := n.problem(v1alpha1.ReasonDuplicateKey, v1alpha1.ReasonDuplicateKey, fmt.Sprintf(
		"contains in its key %s the fee payer %s, which %s already names in Secret %s, key %s: name each fee payer once, or the fleet would count its funds twice",
		n.key, address, first.field, first.name, first.key))
	return *p
}
