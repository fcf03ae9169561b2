package pool

import (
	"fmt"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/refs"
)

// isSecretsReason reports whether a reason belongs to the condition SecretsResolved.
// Problems of keys have other reasons too.
func isSecretsReason(reason string) bool {
	switch reason {
	case v1alpha1.ReasonSecretNotFound, v1alpha1.ReasonSecretKeyMissing, v1alpha1.ReasonSecretMalformed,
		v1alpha1.ReasonDuplicateKey, v1alpha1.ReasonConfigMapNotFound, v1alpha1.ReasonConfigMapKeyMissing,
		v1alpha1.ReasonConfigMapMalformed, v1alpha1.ReasonSecretForeign,
		v1alpha1.ReasonSecretNotUsable, v1alpha1.ReasonConfigMapNotUsable, v1alpha1.ReasonGeneratedKey:
		return true
	default:
		return false
	}
}

func secretsResolved(f *Facts, p *Plan) verdict {
	problems := p.Problems[:len(p.Problems):len(p.Problems)]
	for _, problem := range p.Keys.Problems {
		if isSecretsReason(problem.Reason) {
			problems = append(problems, problem)
		}
	}
	if len(problems) > 0 {
		return conditionFalse(problems[0].Reason, joinFirst(messages(problems), 3))
	}
	if f.References.ReadAt.IsZero() && !f.isUnread(PartReferences) {
		return conditionUnknown(v1alpha1.ReasonNotChecked, "the Secrets and ConfigMaps that the spec names are being read")
	}
	if !f.References.Known() {
		var parts []string
		for _, u := range f.References.Unread {
			if u.LastRead.IsZero() {
				parts = append(parts, fmt.Sprintf("%s %s (%s)", u.Kind, u.Name, u.Cause))
			}
		}
		if len(parts) == 0 {
			return unreadable("the Secrets and ConfigMaps that the spec names")
		}
		return unreadable(joinFirst(parts, 3))
	}
	if !f.KeysKnown {
		return unreadable("the Secrets of generated fee payers")
	}
	return conditionTrue(v1alpha1.ReasonResolved, "every Secret and ConfigMap that the spec names exists and is valid")
}

func messages(problems []refs.Problem) []string {
	out := make([]string, 0, len(problems))
	for _, p := range problems {
		out = append(out, p.Message)
	}
	return out
}
