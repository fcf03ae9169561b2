package pool

import (
	"fmt"

	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/refs"
)

// rolloutInputs returns a text for each Secret and ConfigMap that the spec names and pods read
// when they start, and for each generated key that pods mount. The text changes when the object
// is changed or recreated, and the pods are then replaced. The text for a generated key changes
// only when the key's Secret is recreated.
func rolloutInputs(f *Facts, k *keys.Plan) []string {
	var out []string
	for _, objects := range [][]refs.Object{f.References.Resolved, k.RolloutInputs} {
		for _, o := range objects {
			out = append(out, fmt.Sprintf("%s/%s/%s/%s", o.Kind, o.Name, o.UID, o.ResourceVersion))
		}
	}
	return out
}
