package tenancy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/relay/commandline"
)

// NamedObject is an object that a RelayPool names.
type NamedObject struct {
	// Pool is the RelayPool's name. Namespace is the namespace of the RelayPool and the object.
	Namespace, Pool string
	// Kind is Secret or ConfigMap.
	Kind, Name string
	// Labels are the labels of the object.
	Labels map[string]string
	// Payer says that the RelayPool names the object as a fee payer's key.
	Payer bool
}

// Refusal is why a RelayPool may not use an object that it names.
type Refusal struct {
	// Generated says that the object is a generated key. No label or setting can allow its use.
	Generated bool
	// Text completes "Secret NAME …".
	Text string
}

// Refuse returns why a RelayPool may not use an object, or nil if it may. It reads only the
// object's labels. Whatever the policy, a generated key may be used only as a fee payer's key,
// and only by the RelayPool for which it was made.
func (p Policy) Refuse(n NamedObject) *Refusal {
	if n.Kind == "Secret" && n.Labels[build.LabelPayerState] != "" {
		owner := n.Labels[build.LabelPool]
		switch {
		case owner != n.Pool:
			return &Refusal{true, fmt.Sprintf("is a generated fee payer key of RelayPool %s, which no other RelayPool may use: name a Secret of your own", owner)}
		case !n.Payer:
			return &Refusal{true, "is a generated fee payer key, which may be used only as a fee payer's key: name another Secret"}
		default:
			return nil
		}
	}
	if !p.RequireLabel || slices.Contains(p.Usable, n.Namespace+"/"+n.Name) {
		return nil
	}
	received := "another value"
	switch n.Labels[v1alpha1.LabelUsableBy] {
	case n.Pool, v1alpha1.UsableByAny:
		return nil
	case "":
		received = "none"
	}
	return &Refusal{false, fmt.Sprintf("may not be used by this RelayPool: expected its label %s to be %s or %s, received %s; its owner can allow it with kubectl label %s %s -n %s --overwrite %s=%s, or the operator's administrator with %s",
		v1alpha1.LabelUsableBy, n.Pool, v1alpha1.UsableByAny, received,
		strings.ToLower(n.Kind), n.Name, n.Namespace, v1alpha1.LabelUsableBy, n.Pool, commandline.Setting(FlagUsable))}
}
