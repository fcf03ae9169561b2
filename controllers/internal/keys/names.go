package keys

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

// component is the value of build.LabelComponent on keys' Secrets.
const component = "fee-payer"

// SecretName is the name of a generated key's Secret.
func SecretName(pool string, revision, index int32) string {
	return fmt.Sprintf("%s-payer-%d-%d", pool, revision, index)
}

// numbersOf is the inverse of SecretName; ok is false for any other name.
func numbersOf(pool, secret string) (revision, index int32, ok bool) {
	rest, ok := strings.CutPrefix(secret, pool+"-payer-")
	if !ok {
		return 0, 0, false
	}
	first, second, _ := strings.Cut(rest, "-")
	r, err := strconv.ParseInt(first, 10, 32)
	if err != nil {
		return 0, 0, false
	}
	i, err := strconv.ParseInt(second, 10, 32)
	if err != nil {
		return 0, 0, false
	}
	revision, index = int32(r), int32(i)
	return revision, index, SecretName(pool, revision, index) == secret
}

// JobName is the name of the Job of a rotation's step.
func JobName(pool string, revision int32, step v1alpha1.RotationStep) string {
	return build.JobName(pool, revision, build.Step(strings.ToLower(string(step))))
}

// labelOf returns the value of the label for a state. stateOf is its inverse.
func labelOf(state v1alpha1.FeePayerState) string { return strings.ToLower(string(state)) }

func stateOf(label string) (v1alpha1.FeePayerState, bool) {
	for _, state := range []v1alpha1.FeePayerState{
		v1alpha1.PayerActive, v1alpha1.PayerIncoming, v1alpha1.PayerDraining, v1alpha1.PayerRetired,
	} {
		if label == labelOf(state) {
			return state, true
		}
	}
	return "", false
}

// labels returns the labels of a generated key's Secret.
func labels(pool string, k NewKey) map[string]string {
	return map[string]string{
		build.LabelName:      build.Application,
		build.LabelInstance:  pool,
		build.LabelComponent: component,
		build.LabelManagedBy: build.Manager,
		LabelPool:            pool,
		LabelRevision:        strconv.Itoa(int(k.Revision)),
		LabelIndex:           strconv.Itoa(int(k.Index)),
		LabelState:           labelOf(k.State),
	}
}

// wantedRevision is the revision that the spec asks for.
func wantedRevision(pool *v1alpha1.RelayPool) int32 {
	if pool.Spec.FeePayers.Rotation == nil {
		return 0
	}
	return pool.Spec.FeePayers.Rotation.Revision
}

// wantedCount is how many keys the spec asks for; 0 when none are generated.
func wantedCount(pool *v1alpha1.RelayPool) int32 {
	if pool.Spec.FeePayers.Generate == nil {
		return 0
	}
	return pool.Spec.FeePayers.Generate.Count
}
