package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
)

// rolloutHash returns a hash that changes when pods would read other content at their
// start. Kubernetes updates the mounted files of a changed ConfigMap or Secret without a
// rollout, but pods read most files only once.
func rolloutHash(in Input) string {
	versions := slices.Sorted(slices.Values(in.Rollout))
	config := configFiles(in.Pool)
	parts := [][]string{slices.Compact(versions)}
	for _, name := range slices.Sorted(maps.Keys(config)) {
		parts = append(parts, []string{name, config[name]})
	}
	// A cloud's admission webhook reads these annotations when a pod is made.
	identity := in.Pool.Spec.Template.ServiceAccountAnnotations
	for _, name := range slices.Sorted(maps.Keys(identity)) {
		parts = append(parts, []string{"serviceaccount", name, identity[name]})
	}
	content, err := json.Marshal(parts) // as JSON, so that different lists have different bytes
	if err != nil {
		panic("build: strings cannot be written as JSON: " + err.Error())
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16])
}
