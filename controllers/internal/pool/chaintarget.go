package pool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/chainwatch"
	"github.com/relaypool/relaypool/controllers/internal/refs"
	"github.com/relaypool/relaypool/relay/poolcheck"
)

// valueReader reads one value at the moment of use, for a RelayPool.
type valueReader interface {
	Value(ctx context.Context, pool types.NamespacedName, ref v1alpha1.SecretKeyReference) (string, error)
	Certificates(ctx context.Context, pool types.NamespacedName, from *v1alpha1.CertificatesSource) (string, error)
}

// targetOf returns what to check on the chain for a RelayPool. A check that needs an
// unresolved object is left out, and its result is unknown.
func targetOf(pool *v1alpha1.RelayPool, references *refs.Facts, parse func([]byte) (*poolcheck.Key, error), values valueReader) Target {
	spec := &pool.Spec
	var t Target
	q := &t.Query
	q.Finalized = spec.Solana.Commitment == v1alpha1.CommitmentFinalized
	q.Interval = time.Duration(spec.Pool.CheckIntervalSeconds) * time.Second
	q.Endpoints = endpoints(pool, references, values)
	// An invalid cluster is a fault of the spec, which the condition Accepted reports.
	q.Target.Genesis, _ = Genesis(spec.Solana.Cluster)

	declared, err := declaredProfile(spec, references.Profile)
	switch {
	case err != nil:
		t.Problems = append(t.Problems, malformedConfigMap(spec.Pool.Profile.ConfigMapRef, "a program profile", err))
	case declared != nil:
		q.Target.Profile = declared
	}
	if references.VerifyingKey != nil {
		key, err := parse(references.VerifyingKey)
		if err != nil {
			t.Problems = append(t.Problems, malformedConfigMap(&spec.Pool.VerifyingKeyConfigMapRef, "snarkjs' verification_key.json", err))
		}
		q.Target.Key = key
	}
	return t
}

func malformedConfigMap(ref *v1alpha1.ConfigMapKeyReference, expected string, err error) refs.Problem {
	p := refs.Problem{Kind: refs.ConfigMap, Reason: v1alpha1.ReasonConfigMapMalformed}
	if ref != nil {
		p.Name, p.Key = ref.Name, ref.Key
	}
	p.Message = fmt.Sprintf("ConfigMap %s, key %s: expected %s: %v", p.Name, p.Key, expected, err)
	return p
}

// endpoints returns the endpoints that serve reads, in the order of the spec.
func endpoints(pool *v1alpha1.RelayPool, references *refs.Facts, values valueReader) []chainwatch.Endpoint {
	var out []chainwatch.Endpoint
	key := client.ObjectKeyFromObject(pool)
	for _, e := range pool.Spec.Solana.Endpoints {
		if !servesReads(e.Roles) {
			continue
		}
		endpoint := chainwatch.Endpoint{Name: e.Name}
		if e.URLSecretRef == nil {
			sum := sha256.Sum256([]byte(e.URL))
			endpoint.Identity = hex.EncodeToString(sum[:])
			endpoint.URL = func(context.Context) (string, error) { return e.URL, nil }
		} else {
			ref := *e.URLSecretRef
			endpoint.Identity = identity(references, ref)
			endpoint.URL = func(ctx context.Context) (string, error) { return values.Value(ctx, key, ref) }
		}
		if from := e.CAFrom.DeepCopy(); from != nil {
			endpoint.Identity += authoritiesIdentity(from)
			endpoint.CA = func(ctx context.Context) (string, error) { return values.Certificates(ctx, key, from) }
		}
		out = append(out, endpoint)
	}
	return out
}

func servesReads(roles []v1alpha1.Role) bool {
	for _, r := range roles {
		if r == v1alpha1.RoleRead {
			return true
		}
	}
	return len(roles) == 0
}

// identity returns a text that changes when the Secret with an endpoint's URL changes.
func identity(references *refs.Facts, ref v1alpha1.SecretKeyReference) string {
	for _, o := range references.Resolved {
		if o.Kind == refs.Secret && o.Name == ref.Name {
			return ref.Name + "/" + ref.Key + "/" + string(o.UID) + "/" + o.ResourceVersion
		}
	}
	return ref.Name + "/" + ref.Key
}

// authoritiesIdentity returns a text that changes with the reference to an endpoint's authorities.
// Every check reads the authorities anew, so the text need not change with them.
func authoritiesIdentity(from *v1alpha1.CertificatesSource) string {
	if ref := from.SecretRef; ref != nil {
		return "/Secret/" + ref.Name + "/" + ref.Key
	}
	if ref := from.ConfigMapRef; ref != nil {
		return "/ConfigMap/" + ref.Name + "/" + ref.Key
	}
	return ""
}

// parser parses verifying keys and keeps the results. Parsing takes about 20 ms, and fleets
// with the same circuit have the same key.
type parser struct {
	mutex   sync.Mutex
	results map[[sha256.Size]byte]parseResult
}

type parseResult struct {
	key *poolcheck.Key
	err error
}

// maxParsed is how many results a parser keeps. A parser with that many results drops all of
// them before it adds another one.
const maxParsed = 256

func (p *parser) parse(content []byte) (*poolcheck.Key, error) {
	sum := sha256.Sum256(content)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if cached, ok := p.results[sum]; ok {
		return cached.key, cached.err
	}
	if p.results == nil || len(p.results) >= maxParsed {
		p.results = map[[sha256.Size]byte]parseResult{}
	}
	key, err := poolcheck.ParseKey(content)
	p.results[sum] = parseResult{key, err}
	return key, err
}
