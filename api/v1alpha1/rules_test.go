package v1alpha1_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

// rule is one validation rule of the resource, with an object that it accepts and
// one that it refuses, each as changes to the smallest sample.
type rule struct {
	// before is the existing object, to which the changes in the fields accepted and refused
	// are applied as updates. If it is empty, each of the two creates an object.
	before string
	// status is written to the object before the update.
	status   string
	accepted string
	refused  string
	// message is the rule's whole message, by which TestEveryRuleHasACase finds it.
	message string
}

const (
	oneURL     = "exactly one of the fields in [url urlSecretRef] must be set"
	ownKeys    = `{"spec":{"feePayers":{"secretRefs":[{"name":"shield-payer","key":"key"}],"generate":null,"rotation":null}}}`
	tipMessage = "endpoint has a tip, so it only receives transactions: set roles to [Submit]"
	// tipped is an endpoint with a tip, without roles and the last bracket.
	tipped     = `{"name":"b","url":"https://b.example","tip":{"accounts":["11111111111111111111111111111111"],"minLamports":5,"maxLamports":5}`
	generated2 = `{"spec":{"feePayers":{"secretRefs":null,"generate":{"count":2}}}}`
)

const (
	oneService = "exactly one of the fields in [vaultTransit awsKMS gcpKMS] must be set"
	caFrom     = `"caFrom":{"configMapRef":{"name":"a","key":"ca.crt"}}`
	caMessage  = "caFrom is set, and url does not begin with https://: only a server with TLS has a certificate; correct url, or remove caFrom"
	// vault is a signer's service, without the login and the last bracket.
	vault = `"vaultTransit":{"url":"https://vault.example:8200","key":"payer","keyVersion":1,`
)

// signer returns a change to fee payers of which the only one is in a key service.
func signer(service string) string {
	return `{"spec":{"feePayers":{"secretRefs":null,"signers":[{"name":"a","address":"11111111111111111111111111111111",` + service + `}]}}}`
}

func rules() map[string]rule {
	return map[string]rule{
		"a profile stays as it is once the pool is initialised": {
			before:   `{}`,
			status:   `{"status":{"initialisedAt":"2026-01-01T00:00:00Z"}}`,
			accepted: `{"spec":{"concurrency":9}}`,
			refused:  `{"spec":{"pool":{"profile":{"name":"development"}},"solana":{"cluster":"11111111111111111111111111111111"}}}`,
			message:  "spec.pool.profile cannot change once the pool is initialised: make another RelayPool for another program",
		},
		"a program id stays as it is once the pool is initialised": {
			before:   `{"spec":{"pool":{"programID":"c1oak6tetxYnNfvXKFkpn1d98FxtK7B68vBQLYQpWKp"}}}`,
			status:   `{"status":{"initialisedAt":"2026-01-01T00:00:00Z"}}`,
			accepted: `{"spec":{"concurrency":9}}`,
			refused:  `{"spec":{"pool":{"programID":"JUP6LkbZbjS1jKKwapdHNy74zcZ3tLUZoi5QNyVTaV4"}}}`,
			message:  programMessage,
		},
		"a program id is not removed once the pool is initialised": {
			before:   `{"spec":{"pool":{"programID":"c1oak6tetxYnNfvXKFkpn1d98FxtK7B68vBQLYQpWKp"}}}`,
			status:   `{"status":{"initialisedAt":"2026-01-01T00:00:00Z"}}`,
			accepted: `{"spec":{"paused":true}}`,
			refused:  `{"spec":{"pool":{"programID":null}}}`,
			message:  programMessage,
		},
		"a program id is not added once the pool is initialised": {
			before:   `{}`,
			status:   `{"status":{"initialisedAt":"2026-01-01T00:00:00Z"}}`,
			accepted: `{"spec":{"paused":true}}`,
			refused:  `{"spec":{"pool":{"programID":"c1oak6tetxYnNfvXKFkpn1d98FxtK7B68vBQLYQpWKp"}}}`,
			message:  programMessage,
		},
		"a name leaves room for the names of owned objects": {
			accepted: `{"metadata":{"name":"` + strings.Repeat("a", 40) + `"}}`,
			refused:  `{"metadata":{"name":"` + strings.Repeat("a", 41) + `"}}`,
			message:  "metadata.name has more than 40 characters: names of owned objects are made from it",
		},
		"a name is valid for a Service": {
			accepted: `{"metadata":{"name":"a-1"}}`,
			refused:  `{"metadata":{"name":"1-a"}}`,
			message:  nameMessage,
		},
		"a name has no dots, because a Service's name must not have any": {
			accepted: `{"metadata":{"name":"a"}}`,
			refused:  `{"metadata":{"name":"a.b"}}`,
			message:  nameMessage,
		},
		"replicas and autoscaling exclude each other": {
			accepted: `{"spec":{"autoscaling":{"maxReplicas":3}}}`,
			refused:  `{"spec":{"autoscaling":{"maxReplicas":3},"replicas":2}}`,
			message:  "replicas and autoscaling exclude each other: leave replicas out and set autoscaling.minReplicas, or remove autoscaling",
		},
		"with swaps a network policy allows traffic to the router": {
			accepted: `{"spec":{"swap":{"router":{"url":"https://r.example"}},"networkPolicy":{"database":[{"cidr":"10.0.0.0/8","port":5432}],"rpc":[{"cidr":"10.0.0.0/8","port":443}],"router":[{"cidr":"::/0","port":443}]}}}`,
			refused:  `{"spec":{"swap":{"router":{"url":"https://r.example"}},"networkPolicy":{"database":[{"cidr":"10.0.0.0/8","port":5432}],"rpc":[{"cidr":"10.0.0.0/8","port":443}]}}}`,
			message:  "networkPolicy.router is missing: with swaps on, the pods have to reach the router",
		},
		"a profile is built in or in a ConfigMap, not both": {
			accepted: `{"spec":{"pool":{"profile":{"name":null,"configMapRef":{"name":"a","key":"b"}}}}}`,
			refused:  `{"spec":{"pool":{"profile":{"configMapRef":{"name":"a","key":"b"}}}}}`,
			message:  "exactly one of the fields in [name configMapRef] must be set",
		},
		"a profile is built in or in a ConfigMap; one is required": {
			accepted: `{"spec":{"pool":{"profile":{"name":"shield-pool-v1"}}}}`,
			refused:  `{"spec":{"pool":{"profile":{"name":null}}}}`,
			message:  "exactly one of the fields in [name configMapRef] must be set",
		},
		"an endpoint has one URL, not two": {
			accepted: `{"spec":{"solana":{"endpoints":[{"name":"a","url":"https://a.example"}]}}}`,
			refused:  `{"spec":{"solana":{"endpoints":[{"name":"a","url":"https://a.example","urlSecretRef":{"name":"a","key":"b"}}]}}}`,
			message:  oneURL,
		},
		"an endpoint has one URL, not none": {
			accepted: `{"spec":{"solana":{"endpoints":[{"name":"a","urlSecretRef":{"name":"a","key":"b"}}]}}}`,
			refused:  `{"spec":{"solana":{"endpoints":[{"name":"a"}]}}}`,
			message:  oneURL,
		},
		"a router has one URL": {
			accepted: `{"spec":{"swap":{"router":{"urlSecretRef":{"name":"a","key":"b"}}}}}`,
			refused:  `{"spec":{"swap":{"router":{}}}}`,
			message:  oneURL,
		},
		"an endpoint's url has no key": {
			accepted: `{"spec":{"solana":{"endpoints":[{"name":"a","url":"http://a.example:8899/path"}]}}}`,
			refused:  `{"spec":{"solana":{"endpoints":[{"name":"a","url":"https://a.example/?api-key=canary"}]}}}`,
			message:  "url has a user or a query, which may contain credentials: put the URL into a Secret and name the Secret in urlSecretRef",
		},
		"an endpoint's url has no user": {
			accepted: `{"spec":{"solana":{"endpoints":[{"name":"a","url":"https://a.example"}]}}}`,
			refused:  `{"spec":{"solana":{"endpoints":[{"name":"a","url":"https://user:canary@a.example"}]}}}`,
			message:  "url has a user or a query, which may contain credentials: put the URL into a Secret and name the Secret in urlSecretRef",
		},
		"a fallback router has one URL": {
			accepted: `{"spec":{"swap":{"router":{"url":"https://a.example"},"fallbackRouters":[{"name":"b","urlSecretRef":{"name":"a","key":"b"}}]}}}`,
			refused:  `{"spec":{"swap":{"router":{"url":"https://a.example"},"fallbackRouters":[{"name":"b"}]}}}`,
			message:  oneURL,
		},
		"a fallback router has a name of its own": {
			accepted: `{"spec":{"swap":{"router":{"url":"https://a.example"},"fallbackRouters":[{"name":"b","url":"https://b.example"}]}}}`,
			refused:  `{"spec":{"swap":{"router":{"url":"https://a.example"},"fallbackRouters":[{"name":"preferred","url":"https://b.example"}]}}}`,
			message:  "name is preferred, which is the name of spec.swap.router in metrics: choose another one",
		},
		"a router's url has no key": {
			accepted: `{"spec":{"swap":{"router":{"url":"https://a.example/swap/v1"}}}}`,
			refused:  `{"spec":{"swap":{"router":{"url":"https://a.example/swap/v1?key=canary"}}}}`,
			message:  "url has a user or a query, which may contain credentials: put the URL into a Secret and name the Secret in urlSecretRef, or the key in apiKeySecretRef",
		},
		"an endpoint's URL is an HTTP URL": {
			accepted: `{"spec":{"solana":{"endpoints":[{"name":"a","url":"http://a.example"}]}}}`,
			refused:  `{"spec":{"solana":{"endpoints":[{"name":"a","url":"wss://a.example/canary"}]}}}`,
			message:  "url does not begin with http:// or https://, or has a space: give the HTTP URL, from which the relay derives the ws:// or wss:// URL of notifications",
		},
		"a router's URL is an HTTP URL": {
			accepted: `{"spec":{"swap":{"router":{"url":"https://a.example"}}}}`,
			refused:  `{"spec":{"swap":{"router":{"url":"a.example/canary"}}}}`,
			message:  "url does not begin with http:// or https://, or has a space: expected the base URL of a swap API",
		},
		"at least one endpoint has the role Read": {
			accepted: `{"spec":{"solana":{"endpoints":[{"name":"a","url":"https://a.example","roles":["Read"]},{"name":"b","url":"https://b.example","roles":["Submit"]}]}}}`,
			refused:  `{"spec":{"solana":{"endpoints":[{"name":"a","url":"https://a.example","roles":["Submit","Archive"]}]}}}`,
			message:  "no endpoint has the role Read: give it to at least one without a tip, or leave roles out for all three",
		},
		"at least one endpoint has the role Submit": {
			accepted: `{"spec":{"solana":{"endpoints":[{"name":"a","url":"https://a.example","roles":["Read"]},{"name":"b","url":"https://b.example"}]}}}`,
			refused:  `{"spec":{"solana":{"endpoints":[{"name":"a","url":"https://a.example","roles":["Read"]}]}}}`,
			message:  "no endpoint has the role Submit: give it to at least one without a tip, or leave roles out for all three",
		},
		"an endpoint with a tip does not count as one with the role Submit": {
			accepted: `{"spec":{"solana":{"endpoints":[{"name":"a","url":"https://a.example"},` + tipped + `,"roles":["Submit"]}]}}}`,
			refused:  `{"spec":{"solana":{"endpoints":[{"name":"a","url":"https://a.example","roles":["Read"]},` + tipped + `,"roles":["Submit"]}]}}}`,
			message:  "no endpoint has the role Submit: give it to at least one without a tip, or leave roles out for all three",
		},
		"an endpoint with a tip does not have the role Read": {
			accepted: `{"spec":{"solana":{"endpoints":[{"name":"a","url":"https://a.example"},` + tipped + `,"roles":["Submit"]}]}}}`,
			refused:  `{"spec":{"solana":{"endpoints":[{"name":"a","url":"https://a.example"},` + tipped + `,"roles":["Submit","Read"]}]}}}`,
			message:  tipMessage,
		},
		"an endpoint with a tip does not have the default roles": {
			accepted: `{"spec":{"solana":{"endpoints":[{"name":"a","url":"https://a.example"},` + tipped + `,"roles":["Submit"]}]}}}`,
			refused:  `{"spec":{"solana":{"endpoints":[{"name":"a","url":"https://a.example"},` + tipped + `}]}}}`,
			message:  tipMessage,
		},
		"a tip's minimum is not above its maximum": {
			accepted: `{"spec":{"solana":{"endpoints":[{"name":"a","url":"https://a.example"},` + tipped + `,"roles":["Submit"]}]}}}`,
			refused:  `{"spec":{"solana":{"endpoints":[{"name":"a","url":"https://a.example"},` + strings.Replace(tipped, `"minLamports":5`, `"minLamports":6`, 1) + `,"roles":["Submit"]}]}}}`,
			message:  "tip.minLamports is above tip.maxLamports: lower the one or raise the other",
		},
		"a priority fee's floor is not above its cap": {
			accepted: `{"spec":{"solana":{"priorityFee":{"floorMicroLamports":5,"capMicroLamports":5}}}}`,
			refused:  `{"spec":{"solana":{"priorityFee":{"floorMicroLamports":6,"capMicroLamports":5}}}}`,
			message:  "priorityFee.floorMicroLamports is above priorityFee.capMicroLamports: lower the floor or raise the cap",
		},
		"a priority fee's floor is not above the cap's default": {
			accepted: `{"spec":{"solana":{"priorityFee":{"floorMicroLamports":1000000}}}}`,
			refused:  `{"spec":{"solana":{"priorityFee":{"floorMicroLamports":1000001}}}}`,
			message:  "priorityFee.floorMicroLamports is above priorityFee.capMicroLamports: lower the floor or raise the cap",
		},
		"fee payers are given, generated or in a key service; one is required": {
			accepted: ownKeys,
			refused:  `{"spec":{"feePayers":{"secretRefs":null}}}`,
			message:  "at least one of the fields in [secretRefs generate signers] must be set",
		},
		"fee payers may be in a key service only": {
			accepted: signer(`"awsKMS":{"keyID":"alias/payer"}`),
			refused:  `{"spec":{"feePayers":{"secretRefs":null,"spendCaps":{"dayLamports":0}}}}`,
			message:  "at least one of the fields in [secretRefs generate signers] must be set",
		},
		"fee payers may be of every kind": {
			accepted: `{"spec":{"feePayers":{"generate":{"count":2},"signers":[{"name":"a","address":"11111111111111111111111111111111","awsKMS":{"keyID":"a"}}]}}}`,
			refused:  `{"spec":{"feePayers":{"generate":{"count":2},"signers":[{"name":"a","address":"11111111111111111111111111111111"}]}}}`,
			message:  oneService,
		},
		"a signer has one service": {
			accepted: signer(`"gcpKMS":{"keyVersion":"projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1"}`),
			refused:  signer(`"awsKMS":{"keyID":"a"},"gcpKMS":{"keyVersion":"projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1"}`),
			message:  oneService,
		},
		"a signer of Vault has one way to log in": {
			accepted: signer(vault + `"kubernetes":{"role":"r"}}`),
			refused:  signer(vault + `"kubernetes":{"role":"r"},"tokenSecretRef":{"name":"a","key":"b"}}`),
			message:  "exactly one of the fields in [tokenSecretRef kubernetes] must be set",
		},
		"authorities are in a Secret or in a ConfigMap": {
			accepted: signer(vault + `"kubernetes":{"role":"r"},"caFrom":{"configMapRef":{"name":"a","key":"b"}}}`),
			refused:  signer(vault + `"kubernetes":{"role":"r"},"caFrom":{}}`),
			message:  "exactly one of the fields in [secretRef configMapRef] must be set",
		},
		"the database's authorities are in a Secret or in a ConfigMap, not both": {
			accepted: `{"spec":{"database":{"caFrom":{"secretRef":{"name":"pg-ca","key":"ca.crt"}},"clientCertificateSecretRef":{"name":"pg-client"}}}}`,
			refused:  `{"spec":{"database":{"caFrom":{"secretRef":{"name":"pg-ca","key":"ca.crt"},"configMapRef":{"name":"a","key":"b"}}}}}`,
			message:  "exactly one of the fields in [secretRef configMapRef] must be set",
		},
		"an endpoint with authorities has TLS": {
			accepted: `{"spec":{"solana":{"endpoints":[{"name":"a","url":"https://a.example",` + caFrom + `}]}}}`,
			refused:  `{"spec":{"solana":{"endpoints":[{"name":"a","url":"http://a.example/canary",` + caFrom + `}]}}}`,
			message:  caMessage,
		},
		"an endpoint with authorities may have its URL in a Secret": {
			accepted: `{"spec":{"solana":{"endpoints":[{"name":"a","urlSecretRef":{"name":"a","key":"b"},` + caFrom + `}]}}}`,
			refused:  `{"spec":{"solana":{"endpoints":[{"name":"a","url":"http://a.example",` + caFrom + `}]}}}`,
			message:  caMessage,
		},
		"a router with authorities has TLS": {
			accepted: `{"spec":{"swap":{"router":{"url":"https://a.example",` + caFrom + `}}}}`,
			refused:  `{"spec":{"swap":{"router":{"url":"http://a.example/canary",` + caFrom + `}}}}`,
			message:  caMessage,
		},
		"a fallback router with authorities has TLS": {
			accepted: `{"spec":{"swap":{"router":{"url":"http://a.example"},"fallbackRouters":[{"name":"b","url":"https://b.example",` + caFrom + `}]}}}`,
			refused:  `{"spec":{"swap":{"router":{"url":"http://a.example"},"fallbackRouters":[{"name":"b","url":"http://b.example",` + caFrom + `}]}}}`,
			message:  caMessage,
		},
		"Vault's URL is an HTTPS URL": {
			accepted: signer(vault + `"kubernetes":{"role":"r"}}`),
			refused:  signer(strings.Replace(vault, "https://", "http://canary.", 1) + `"kubernetes":{"role":"r"}}`),
			message:  "url does not begin with https://, or has a space, a user or a query: expected Vault's address, such as https://vault.example:8200",
		},
		"the endpoint of AWS is an HTTPS URL": {
			accepted: signer(`"awsKMS":{"keyID":"a","endpoint":"https://kms.example"}`),
			refused:  signer(`"awsKMS":{"keyID":"a","endpoint":"https://canary@kms.example"}`),
			message:  "endpoint does not begin with https://, or has a space, a user or a query: expected the address of AWS KMS",
		},
		"the endpoint of Google Cloud is an HTTPS URL": {
			accepted: signer(`"gcpKMS":{"keyVersion":"projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1","endpoint":"https://kms.example"}`),
			refused:  signer(`"gcpKMS":{"keyVersion":"projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1","endpoint":"https://kms.example?canary"}`),
			message:  "endpoint does not begin with https://, or has a space, a user or a query: expected the address of Cloud KMS",
		},
		"only generated keys are rotated": {
			accepted: `{"spec":{"feePayers":{"secretRefs":null,"generate":{"count":2},"rotation":{"revision":7}}}}`,
			refused:  `{"spec":{"feePayers":{"rotation":{"revision":0}}}}`,
			message:  "rotation is for generated keys: to replace keys of your own, change the list secretRefs, or use feePayers.generate",
		},
		"a payer's minimum is not above its target": {
			accepted: `{"spec":{"feePayers":{"minimumBalanceLamports":6000000,"targetBalanceLamports":6000000}}}`,
			refused:  `{"spec":{"feePayers":{"minimumBalanceLamports":6000001,"targetBalanceLamports":6000000}}}`,
			message:  "minimumBalanceLamports is above targetBalanceLamports: a payer would be short as soon as it is funded",
		},
		"an hour's cap pays for a transaction": {
			accepted: `{"spec":{"feePayers":{"spendCaps":{"hourLamports":1786760}}}}`,
			refused:  `{"spec":{"feePayers":{"spendCaps":{"hourLamports":1786759}}}}`,
			message:  "spendCaps.hourLamports is below the 1786760 lamports that one transaction costs: raise it, or set 0 for no cap",
		},
		"a day's cap pays for a transaction": {
			accepted: `{"spec":{"feePayers":{"spendCaps":{"dayLamports":1786760}}}}`,
			refused:  `{"spec":{"feePayers":{"spendCaps":{"dayLamports":1786759}}}}`,
			message:  "spendCaps.dayLamports is below the 1786760 lamports that one transaction costs: raise it, or set 0 for no cap",
		},
		"the transfers' cap pays for a transaction": {
			accepted: `{"spec":{"feePayers":{"spendCaps":{"transfersDayLamports":1786760}}}}`,
			refused:  `{"spec":{"feePayers":{"spendCaps":{"transfersDayLamports":1786759}}}}`,
			message:  "spendCaps.transfersDayLamports is below the 1786760 lamports that one transaction costs: raise it, or set 0 for no cap",
		},
		"a revision goes up by one": {
			before:   `{"spec":{"feePayers":{"secretRefs":null,"generate":{"count":2},"rotation":{"revision":3}}}}`,
			accepted: `{"spec":{"feePayers":{"rotation":{"revision":4}}}}`,
			refused:  `{"spec":{"feePayers":{"rotation":{"revision":5}}}}`,
			message:  revisionMessage,
		},
		"a revision does not go down": {
			before:   `{"spec":{"feePayers":{"secretRefs":null,"generate":{"count":2},"rotation":{"revision":3}}}}`,
			accepted: `{"spec":{"feePayers":{"rotation":{"revision":3}}}}`,
			refused:  `{"spec":{"feePayers":{"rotation":{"revision":2}}}}`,
			message:  revisionMessage,
		},
		"a revision is not removed": {
			before:   `{"spec":{"feePayers":{"secretRefs":null,"generate":{"count":2},"rotation":{"revision":3}}}}`,
			accepted: `{"spec":{"paused":true}}`,
			refused:  `{"spec":{"feePayers":{"rotation":null}}}`,
			message:  revisionMessage,
		},
		"rotated keys are not replaced by keys of the user": {
			before:   `{"spec":{"feePayers":{"secretRefs":null,"generate":{"count":2},"rotation":{"revision":3}}}}`,
			accepted: `{"spec":{"paused":true}}`,
			refused:  ownKeys,
			message:  revisionMessage,
		},
		"the first rotation is to revision 1": {
			before:   generated2,
			accepted: `{"spec":{"feePayers":{"rotation":{"revision":1}}}}`,
			refused:  `{"spec":{"feePayers":{"rotation":{"revision":2}}}}`,
			message:  "rotation.revision can only be raised by one: the first rotation is to revision 1",
		},
		"a lower count of keys needs a rotation": {
			before:   generated2,
			accepted: `{"spec":{"feePayers":{"generate":{"count":1},"rotation":{"revision":1}}}}`,
			refused:  `{"spec":{"feePayers":{"generate":{"count":1}}}}`,
			message:  countMessage,
		},
		"a lower count of keys needs another rotation even if the keys were rotated before": {
			before:   `{"spec":{"feePayers":{"secretRefs":null,"generate":{"count":2},"rotation":{"revision":3}}}}`,
			accepted: `{"spec":{"feePayers":{"generate":{"count":1},"rotation":{"revision":4}}}}`,
			refused:  `{"spec":{"feePayers":{"generate":{"count":1},"rotation":{"revision":3}}}}`,
			message:  countMessage,
		},
		"a higher count of keys needs no rotation": {
			before:   generated2,
			accepted: `{"spec":{"feePayers":{"generate":{"count":3}}}}`,
			refused:  `{"spec":{"feePayers":{"generate":{"count":1}}}}`,
			message:  countMessage,
		},
		"the minimum number of pods is not above the maximum": {
			accepted: `{"spec":{"autoscaling":{"minReplicas":3,"maxReplicas":3}}}`,
			refused:  `{"spec":{"autoscaling":{"minReplicas":4,"maxReplicas":3}}}`,
			message:  "autoscaling.minReplicas is above autoscaling.maxReplicas: lower the one or raise the other",
		},
		"pods' labels have valid keys": {
			accepted: `{"spec":{"template":{"labels":{"example.com/team":"payments"}}}}`,
			refused:  `{"spec":{"template":{"labels":{"team of mine":"payments"}}}}`,
			message:  "template.labels" + labelMessage,
		},
		"pods' labels have values of at most 63 characters": {
			accepted: `{"spec":{"template":{"labels":{"team":"` + strings.Repeat("a", 63) + `"}}}}`,
			refused:  `{"spec":{"template":{"labels":{"team":"` + strings.Repeat("a", 64) + `"}}}}`,
			message:  "template.labels" + labelMessage,
		},
		"a node selector has valid labels": {
			accepted: `{"spec":{"template":{"nodeSelector":{"kubernetes.io/arch":"amd64"}}}}`,
			refused:  `{"spec":{"template":{"nodeSelector":{"kubernetes.io/":"amd64"}}}}`,
			message:  "template.nodeSelector" + labelMessage,
		},
		"monitors' labels are valid": {
			accepted: `{"spec":{"monitoring":{"labels":{"release":"prometheus"}}}}`,
			refused:  `{"spec":{"monitoring":{"labels":{"release":"` + strings.Repeat("a", 64) + `"}}}}`,
			message:  "monitoring.labels" + labelMessage,
		},
		"pods' annotations have valid keys": {
			accepted: `{"spec":{"template":{"annotations":{"example.com/owner":"anything, of any reasonable length"}}}}`,
			refused:  `{"spec":{"template":{"annotations":{"an owner":"x"}}}}`,
			message:  annotationMessage,
		},
		"service accounts' annotations have valid keys": {
			accepted: `{"spec":{"template":{"serviceAccountAnnotations":{"eks.amazonaws.com/role-arn":"arn:aws:iam::111122223333:role/payer"}}}}`,
			refused:  `{"spec":{"template":{"serviceAccountAnnotations":{"a role":"x"}}}}`,
			message:  "template.serviceAccountAnnotations has a key that no annotation can have, or a value of more than 8192 characters: expected keys such as eks.amazonaws.com/role-arn",
		},
		"pods' annotations have values of at most 8192 characters": {
			accepted: `{"spec":{"template":{"annotations":{"a":"` + strings.Repeat("a", 8192) + `"}}}}`,
			refused:  `{"spec":{"template":{"annotations":{"a":"` + strings.Repeat("a", 8193) + `"}}}}`,
			message:  annotationMessage,
		},
		"a load balancer's class is for a load balancer": {
			accepted: `{"spec":{"api":{"service":{"type":"LoadBalancer","loadBalancerClass":"a/b"}}}}`,
			refused:  `{"spec":{"api":{"service":{"type":"NodePort","loadBalancerClass":"a/b"}}}}`,
			message:  loadBalancerMessage,
		},
		"source ranges are for a load balancer": {
			accepted: `{"spec":{"api":{"service":{"type":"LoadBalancer","loadBalancerSourceRanges":["10.0.0.0/8"]}}}}`,
			refused:  `{"spec":{"api":{"service":{"loadBalancerSourceRanges":["10.0.0.0/8"]}}}}`,
			message:  loadBalancerMessage,
		},
		"source ranges are address ranges": {
			accepted: `{"spec":{"api":{"service":{"type":"LoadBalancer","loadBalancerSourceRanges":["fd00::/8"]}}}}`,
			refused:  `{"spec":{"api":{"service":{"type":"LoadBalancer","loadBalancerSourceRanges":["10.0.0.1"]}}}}`,
			message:  "api.service.loadBalancerSourceRanges has an item that is no address range such as 203.0.113.0/24: write the address of the network, a slash and the length of its prefix",
		},
		"a policy for external traffic is for a Service that gets such traffic": {
			accepted: `{"spec":{"api":{"service":{"type":"NodePort","externalTrafficPolicy":"Local"}}}}`,
			refused:  `{"spec":{"api":{"service":{"externalTrafficPolicy":"Local"}}}}`,
			message:  "api.service has externalTrafficPolicy, and its type is ClusterIP: set type to NodePort or LoadBalancer, or remove externalTrafficPolicy",
		},
		"a Service's annotations have valid keys": {
			accepted: `{"spec":{"api":{"service":{"annotations":{"example.com/a":"b"}}}}}`,
			refused:  `{"spec":{"api":{"service":{"annotations":{"a key":"b"}}}}}`,
			message:  "api.service.annotations" + ownerMessage,
		},
		"an Ingress' annotations have valid keys": {
			accepted: `{"spec":{"api":{"ingress":{"hosts":["a.example"],"annotations":{"example.com/a":"b"}}}}}`,
			refused:  `{"spec":{"api":{"ingress":{"hosts":["a.example"],"annotations":{"a key":"b"}}}}}`,
			message:  "api.ingress.annotations" + ownerMessage,
		},
		"an HTTPRoute's annotations have valid keys": {
			accepted: `{"spec":{"api":{"gateway":{"parentRefs":[{"name":"a"}],"annotations":{"example.com/a":"b"}}}}}`,
			refused:  `{"spec":{"api":{"gateway":{"parentRefs":[{"name":"a"}],"annotations":{"a key":"b"}}}}}`,
			message:  "api.gateway.annotations" + ownerMessage,
		},
		"a certificate is in a Secret or comes from cert-manager": {
			accepted: `{"spec":{"api":{"ingress":{"hosts":["*.a.example"],"tls":{"secretName":"a"}}}}}`,
			refused:  `{"spec":{"api":{"ingress":{"hosts":["*.a.example"],"tls":{"secretName":"a","certManager":{"issuer":"b"}}}}}}`,
			message:  "exactly one of the fields in [secretName certManager] must be set",
		},
		"cert-manager has one issuer": {
			accepted: `{"spec":{"api":{"ingress":{"hosts":["a.example"],"tls":{"certManager":{"clusterIssuer":"b"}}}}}}`,
			refused:  `{"spec":{"api":{"ingress":{"hosts":["a.example"],"tls":{"certManager":{}}}}}}`,
			message:  "exactly one of the fields in [clusterIssuer issuer] must be set",
		},
		"a destination is not both an address range and pods": {
			accepted: `{"spec":{"networkPolicy":{"database":[{"namespaceSelector":{},"podSelector":{"matchLabels":{"a":"b"}},"port":5432}],"rpc":[{"podSelector":{},"port":443}]}}}`,
			refused:  `{"spec":{"networkPolicy":{"database":[{"cidr":"10.0.0.0/8","podSelector":{},"port":5432}],"rpc":[{"cidr":"10.0.0.0/8","port":443}]}}}`,
			message:  destinationMessage,
		},
		"a destination is not everywhere": {
			accepted: `{"spec":{"networkPolicy":{"database":[{"namespaceSelector":{},"port":5432}],"rpc":[{"cidr":"10.0.0.0/8","port":443}]}}}`,
			refused:  `{"spec":{"networkPolicy":{"database":[{"port":5432}],"rpc":[{"cidr":"10.0.0.0/8","port":443}]}}}`,
			message:  destinationMessage,
		},
		"a destination is an address range": {
			accepted: `{"spec":{"networkPolicy":{"database":[{"cidr":"fd00::/8","port":5432}],"rpc":[{"cidr":"10.0.0.0/8","port":443}]}}}`,
			refused:  `{"spec":{"networkPolicy":{"database":[{"cidr":"database.example","port":5432}],"rpc":[{"cidr":"10.0.0.0/8","port":443}]}}}`,
			message:  "cidr is no address range such as 10.20.0.0/16: write the address of the network, a slash and the length of its prefix",
		},
	}
}

const (
	programMessage  = "spec.pool.programID cannot change once the pool is initialised: make another RelayPool for another program"
	nameMessage     = "metadata.name must begin with a letter and hold lower-case letters, digits and dashes only: a Service has the same name"
	revisionMessage = "rotation.revision can only be raised by one, and cannot be lowered or removed: keys that were retired are not used again"
	labelMessage    = " has a key that no label can have, or a value of more than 63 characters: expected keys such as team or example.com/team"
	countMessage    = "generate.count goes down only together with a rotation: raise rotation.revision by one in the same change, which moves the funds"

	destinationMessage  = "a destination is either an address range or pods: set cidr, or namespaceSelector and podSelector, or one of these two"
	loadBalancerMessage = "api.service has loadBalancerClass or loadBalancerSourceRanges, and its type is not LoadBalancer: set type to LoadBalancer, or remove them"
	ownerMessage        = " has a key that no annotation can have, or a value of more than 8192 characters: expected keys such as example.com/owner"

	annotationMessage = "template.annotations has a key that no annotation can have, or a value of more than 8192 characters: expected keys such as example.com/owner"
)

func TestRules(t *testing.T) {
	t.Parallel()
	for sentence, tt := range rules() {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			cl := newClient(t)
			namespace := apiservertest.Namespace(t)
			submit := func(change string) error {
				object := minimal(t, namespace, tt.before, change)
				if tt.before == "" {
					return cl.Create(t.Context(), object, client.DryRunAll)
				}
				live := minimal(t, namespace)
				if err := cl.Get(t.Context(), client.ObjectKeyFromObject(object), live); err != nil {
					t.Fatal(err)
				}
				merge(t, live, change)
				return cl.Update(t.Context(), live, client.DryRunAll)
			}
			if tt.before != "" {
				object := minimal(t, namespace, tt.before)
				if err := cl.Create(t.Context(), object); err != nil {
					t.Fatalf("create the object before the change: %v", err)
				}
				if tt.status != "" {
					merge(t, object, tt.status)
					if err := cl.Status().Update(t.Context(), object); err != nil {
						t.Fatalf("write the status before the change: %v", err)
					}
				}
			}
			if err := submit(tt.accepted); err != nil {
				t.Errorf("accepted object: %v", err)
			}
			err := submit(tt.refused)
			switch {
			case err == nil:
				t.Error("the object that should be refused was accepted")
			case !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tt.message):
				t.Errorf("refused object: the error is %v; expected the message %q", err, tt.message)
			case strings.Contains(err.Error(), "canary"):
				t.Errorf("refused object: the message repeats a value that may be a credential: %v", err)
			}
		})
	}
}

// Before the pool is initialised a wrong profile or program can still be corrected.
func TestProfileMayChangeBeforeThePoolIsInitialised(t *testing.T) {
	t.Parallel()
	cl := newClient(t)
	object := minimal(t, apiservertest.Namespace(t))
	if err := cl.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	merge(t, object, `{"spec":{"pool":{"profile":{"name":"development"},"programID":"c1oak6tetxYnNfvXKFkpn1d98FxtK7B68vBQLYQpWKp"}}}`)
	if err := cl.Update(t.Context(), object); err != nil {
		t.Error(err)
	}
}

// The API server drops stored fields that a newer CRD does not have. The field configMapRef was
// once called configMap, so an upgrade drops such a profile. A manifest with the new name is
// accepted although the pool is initialised; from then on the profile cannot change.
func TestAProfileLostInARenameCanBeRestored(t *testing.T) {
	t.Parallel()
	// The CRD has another group here, because other tests use the real one.
	const group = "renamed.example"
	define := func(replace ...string) {
		crds, err := apiserver.OwnCRDs()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(crds[0])
		if err != nil {
			t.Fatal(err)
		}
		replaced := strings.NewReplacer(append(replace, v1alpha1.Group, group)...).Replace(string(text))
		crd := new(apiextensionsv1.CustomResourceDefinition)
		if err := json.Unmarshal([]byte(replaced), crd); err != nil {
			t.Fatal(err)
		}
		crd.Spec.Names.ShortNames, crd.Spec.Names.Categories = nil, nil
		if err := apiservertest.Server(t).Install(crd); err != nil {
			t.Fatal(err)
		}
	}
	define("configMapRef", "configMap")
	cl, namespace := newClient(t), apiservertest.Namespace(t)
	object := minimal(t, namespace, `{"spec":{"pool":{"profile":{"name":null,"configMap":{"name":"a","key":"b"}}}}}`)
	object.SetAPIVersion(group + "/v1alpha1")
	if err := cl.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	merge(t, object, `{"status":{"initialisedAt":"2026-01-01T00:00:00Z"}}`)
	if err := cl.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	define()
	// The server takes a moment to serve the new CRD.
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if err = cl.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			t.Fatal(err)
		}
		merge(t, object, `{"spec":{"pool":{"profile":{"configMap":null,"configMapRef":{"name":"a","key":"b"}}}}}`)
		if err = cl.Update(t.Context(), object); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatalf("the manifest with the new name: %v", err)
	}
	merge(t, object, `{"spec":{"pool":{"profile":{"configMapRef":{"name":"other"}}}}}`)
	if err := cl.Update(t.Context(), object); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.pool.profile cannot change") {
		t.Errorf("another profile after that: the error is %v, want one that says that it cannot change", err)
	}
}

// A rule without a case would be untested.
func TestEveryRuleHasACase(t *testing.T) {
	t.Parallel()
	crds, err := apiserver.OwnCRDs()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	var collect func(schema *apiextensionsv1.JSONSchemaProps)
	collect = func(schema *apiextensionsv1.JSONSchemaProps) {
		for _, validation := range schema.XValidations {
			want[validation.Message] = true
		}
		for name := range schema.Properties {
			property := schema.Properties[name]
			collect(&property)
		}
		if schema.Items != nil && schema.Items.Schema != nil {
			collect(schema.Items.Schema)
		}
	}
	collect(crds[0].Spec.Versions[0].Schema.OpenAPIV3Schema)
	for _, tt := range rules() {
		if !want[tt.message] {
			t.Errorf("no rule of the CRD has the message %q", tt.message)
		}
	}
	have := map[string]bool{}
	for _, tt := range rules() {
		have[tt.message] = true
	}
	for _, message := range slices.Sorted(maps.Keys(want)) {
		if !have[message] {
			t.Errorf("the rule %q has no case in rules", message)
		}
	}
}
