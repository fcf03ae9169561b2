package pool

import (
	"fmt"

	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/refs"
)

// rollout returns an identity for each object that pods read at their start, except the
// RelayPool. The pods are replaced when an identity changes.
func rollout(f *Facts, k *keys.Plan) []string {
	var out []string
	for _, objects := range [][]refs.Object{f.References.Resolved, k.Rollout} {
		for _, o := range objects {
			out = append(out, fmt.Sprintf("%s/%s/%s/%s", o.Kind, o.Name, o.UID, o.ResourceVersion))
		}
	}
	return out
}
