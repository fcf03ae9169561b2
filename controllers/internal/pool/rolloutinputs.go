package pool

import (
	"fmt"

	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/refs"
)

// rolloutInputs returns an identity for each Secret and ConfigMap that the spec names and
// pods read at their start, and for each generated key that pods mount. The pods are replaced
// when an identity changes.
func rolloutInputs(f *Facts, k *keys.Plan) []string {
	var out []string
	for _, objects := range [][]refs.Object{f.References.Resolved, k.RolloutInputs} {
		for _, o := range objects {
			out = append(out, fmt.Sprintf("%s/%s/%s/%s", o.Kind, o.Name, o.UID, o.ResourceVersion))
		}
	}
	return out
}
