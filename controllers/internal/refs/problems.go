package refs

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/tenancy"
	"github.com/relaypool/relaypool/relay/contract"
)

func trimSpace(value []byte) string { return string(bytes.TrimSpace(value)) }

// evaluate checks one value that a RelayPool names, in the object that was read. If the
// RelayPool may not use the object, the finding shows neither the object's keys nor the
// length of any value.
func evaluate(n namedValue, got content, policy tenancy.Policy, pool types.NamespacedName, now time.Time) finding {
	f := finding{at: now, object: got.object}
	values := got.values
	if f.object.UID == "" {
		if n.optional && n.kind == ConfigMap && !policy.RequireLabel {
			return f
		}
		what := "does not exist: create it, or name another"
		switch {
		case n.optional:
			what = "does not exist, and optional does not count here, because pods would also get an object that is not for them and appears later: create it, or remove the reference"
		case n.key != "":
			what = fmt.Sprintf("does not exist: create it with the key %s, or name another", n.key)
		}
		f.problem = n.problem(v1alpha1.ReasonSecretNotFound, v1alpha1.ReasonConfigMapNotFound, what)
		return f
	}
	if refusal := policy.Refuse(tenancy.NamedObject{
		Namespace: pool.Namespace, Pool: pool.Name, Kind: string(n.kind), Name: n.name, Labels: got.labels, Payer: n.format == payerKey,
	}); refusal != nil {
		reason := v1alpha1.ReasonSecretNotUsable
		if refusal.Generated {
			reason = v1alpha1.ReasonGeneratedKey
		}
		f.problem = n.problem(reason, v1alpha1.ReasonConfigMapNotUsable, refusal.Text)
		return f
	}
	if n.relayVariables {
		for key := range values {
			if strings.HasPrefix(key, contract.VariablePrefix) {
				f.problem = n.problem(v1alpha1.ReasonSecretMalformed, v1alpha1.ReasonConfigMapMalformed,
					"has a key that begins with "+contract.VariablePrefix+", which would set the relay's own variables: set fields of the RelayPool instead, and remove the key")
				return f
			}
		}
	}
	if n.format.isWhole() {
		return f
	}
	value, ok := values[n.key]
	if !ok {
		f.problem = n.problem(v1alpha1.ReasonSecretKeyMissing, v1alpha1.ReasonConfigMapKeyMissing,
			fmt.Sprintf("has no key %s among its %d keys: expected %s; add it, or name another key", n.key, len(values), n.format.expected()))
		return f
	}
	address, fault := n.format.evaluate(value)
	if n.format == clientKey && fault == "" {
		fault = pairFault(values)
	}
	if fault != "" {
		f.problem = n.problem(v1alpha1.ReasonSecretMalformed, v1alpha1.ReasonConfigMapMalformed,
			fmt.Sprintf("has a key %s whose value %s; correct it", n.key, fault))
		return f
	}
	f.address = address
	if n.format.keepsValue() {
		f.content = bytes.Clone(value)
	}
	return f
}

// problem returns a problem with the message "<field>: <kind> <name> <what>".
func (n namedValue) problem(secretReason, configMapReason, what string) *Problem {
	reason := secretReason
	if n.kind == ConfigMap {
		reason = configMapReason
	}
	message := fmt.Sprintf("%s %s %s", n.kind, n.name, what)
	if n.field != "" {
		message = n.field + ": " + message
	}
	return &Problem{Kind: n.kind, Name: n.name, Key: n.key, Reason: reason, Message: message}
}

// factsOf makes facts from the findings, in an order that does not depend on the order
// in which objects were read.
func factsOf(all []namedValue, signers []v1alpha1.Signer, found map[namedValue]finding, unread []Unread) Facts {
	facts := Facts{Unread: unread}
	seen := map[object]bool{}
	payers := map[string]namedValue{} // by address
	for _, n := range all {
		f := found[n]
		if f.object.UID != "" && !seen[n.object] && n.format.changeReplacesPods() {
			seen[n.object] = true
			facts.Resolved = append(facts.Resolved, f.object)
		}
		if f.problem != nil {
			facts.Problems = append(facts.Problems, *f.problem)
			continue
		}
		switch {
		case f.at.IsZero(): // the object was never read, so nothing is known about the value
		case n.format == payerKey:
			addPayer(&facts, payers, n, f.address)
		case n.format == verifyingKey:
			facts.VerifyingKey = f.content
		case n.format == profile:
			facts.Profile = f.content
		}
	}
	addDuplicateSigners(&facts, payers, signers)
	slices.SortFunc(facts.Resolved, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	slices.SortStableFunc(facts.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key))
	})
	slices.SortFunc(facts.Unread, func(a, b Unread) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	return facts
}
