package tenancy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/refs"
	"github.com/relaypool/relaypool/controllers/internal/tenancy"
	"github.com/relaypool/relaypool/hack/apiserver"
)

// What a tenant who may only make RelayPools could do with a field, and what stops it.
const (
	number     = "a number: the schema bounds it"
	choice     = "one of a few words, or true or false: the schema has them all"
	text       = "a text for the relay, the chain or a key service: it names no object, image or node"
	address    = "an address that operator or fleet call, or may call: the network policies of both"
	peers      = "who may call the fleet, or find its metrics: it opens this fleet only"
	secret     = "a name of a Secret: its label"
	configMap  = "a name of a ConfigMap: its label"
	pullSecret = "a name of a Secret that the kubelet reads: its label"
	image      = "an image: --tenant-images"
	exposure   = "how others reach the fleet: --tenant-api-fields"
	placement  = "where and how pods run: --tenant-template-fields"
	pod        = "nearly all of it: --tenant-template-fields, and if that allows it, the checks of podTemplate"
)

// classes has every field of the spec. A new field is first looked at with the eyes of a tenant.
var classes = map[string]string{
	number: `api.requestsPerMinute api.retentionHours api.waitSeconds autoscaling.maxReplicas autoscaling.minReplicas
		autoscaling.oldestAgeSeconds autoscaling.submissionsPerReplica concurrency database.maxConnections
		feePayers.generate.count feePayers.minimumBalanceLamports feePayers.rotation.revision
		feePayers.signers[].vaultTransit.keyVersion feePayers.spendCaps.dayLamports feePayers.spendCaps.hourLamports
		feePayers.spendCaps.transfersDayLamports feePayers.targetBalanceLamports monitoring.intervalSeconds
		networkPolicy.database[].port networkPolicy.router[].port networkPolicy.rpc[].port networkPolicy.signers[].port
		pool.checkIntervalSeconds pool.rootHistorySize replicas solana.endpoints[].requestsPerSecond
		solana.endpoints[].tip.maxLamports solana.endpoints[].tip.minLamports solana.priorityFee.capMicroLamports
		solana.priorityFee.floorMicroLamports solana.priorityFee.maxEarlyFeesLamports solana.priorityFee.percentile
		swap.concurrency swap.fallbackRouters[].requestsPerSecond swap.router.requestsPerSecond
		swap.router.timeoutMilliseconds swap.slippageBps`,
	choice: `autoscaling.provider feePayers.generate.backup.required monitoring.podMonitor monitoring.prometheusRule paused pool.gate pool.offCurveRecipients
		pool.profile.name pool.proofAEncoding solana.commitment solana.endpoints[].roles[] solana.endpoints[].tip.use
		solana.endpoints[].webSocket solana.transactionFormat template.logLevel`,
	// A token for kubernetes.audience is one of the fleet's own service account, which has no rights.
	text: `api.clientIPHeader api.corsOrigins[] feePayers.signers[].address feePayers.signers[].awsKMS.keyID
		feePayers.signers[].awsKMS.region feePayers.signers[].gcpKMS.keyVersion feePayers.signers[].name
		feePayers.signers[].vaultTransit.key feePayers.signers[].vaultTransit.kubernetes.audience
		feePayers.signers[].vaultTransit.kubernetes.mount feePayers.signers[].vaultTransit.kubernetes.role
		feePayers.signers[].vaultTransit.mount feePayers.signers[].vaultTransit.namespace pool.mints[].address
		pool.mints[].field pool.programID solana.cluster solana.endpoints[].name solana.endpoints[].tip.accounts[]
		solana.lookupTable swap.fallbackRouters[].name swap.router.programID viewingKeys.compliancePublicKey
		viewingKeys.messages[]`,
	address: `feePayers.signers[].awsKMS.endpoint feePayers.signers[].gcpKMS.endpoint feePayers.signers[].vaultTransit.url
		networkPolicy.database[].cidr networkPolicy.router[].cidr networkPolicy.rpc[].cidr networkPolicy.signers[].cidr
		networkPolicy.database[].namespaceSelector networkPolicy.database[].podSelector
		networkPolicy.router[].namespaceSelector networkPolicy.router[].podSelector networkPolicy.rpc[].namespaceSelector
		networkPolicy.rpc[].podSelector networkPolicy.signers[].namespaceSelector networkPolicy.signers[].podSelector
		solana.endpoints[].url swap.fallbackRouters[].url swap.router.url`,
	peers: `monitoring.labels networkPolicy.apiFrom[] networkPolicy.operationsFrom[]`,
	secret: `api.keysSecretRef database.caFrom.secretRef database.clientCertificateSecretRef database.urlSecretRef
		solana.endpoints[].caFrom.secretRef swap.fallbackRouters[].caFrom.secretRef swap.router.caFrom.secretRef feePayers.secretRefs[] feePayers.signers[].awsKMS.credentialsSecretRef
		feePayers.signers[].gcpKMS.credentialsSecretRef feePayers.signers[].vaultTransit.caFrom.secretRef
		feePayers.signers[].vaultTransit.tokenSecretRef solana.endpoints[].urlSecretRef
		swap.fallbackRouters[].apiKeySecretRef swap.fallbackRouters[].urlSecretRef swap.router.apiKeySecretRef
		swap.router.urlSecretRef`,
	configMap: `database.caFrom.configMapRef solana.endpoints[].caFrom.configMapRef
		swap.fallbackRouters[].caFrom.configMapRef swap.router.caFrom.configMapRef feePayers.signers[].vaultTransit.caFrom.configMapRef pool.profile.configMapRef
		pool.verifyingKeyConfigMapRef`,
	pullSecret: `template.imagePullSecrets[]`,
	image:      `image`,
	placement: `template.affinity template.annotations template.labels template.nodeSelector template.priorityClassName
		template.resources template.serviceAccountAnnotations template.tolerations[]`,
	exposure: `api.gateway.annotations api.gateway.hostnames[] api.gateway.parentRefs[].name api.gateway.parentRefs[].namespace
		api.gateway.parentRefs[].sectionName api.ingress.annotations api.ingress.className api.ingress.hosts[]
		api.ingress.tls.certManager.clusterIssuer api.ingress.tls.certManager.issuer api.ingress.tls.secretName
		api.service.annotations api.service.externalTrafficPolicy api.service.loadBalancerClass
		api.service.loadBalancerSourceRanges[] api.service.type`,
	pod: `template.podTemplate`,
}

// kubernetesTypes are fields whose schema is Kubernetes' own.
var kubernetesTypes = []string{"template.resources", "template.affinity", "template.tolerations[]", "networkPolicy.apiFrom[]", "networkPolicy.operationsFrom[]"}

// specFields returns the schema of each field of the spec that a person sets, by its path.
func specFields(t *testing.T) map[string]apiextensionsv1.JSONSchemaProps {
	t.Helper()
	crds, err := apiserver.OwnCRDs()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]apiextensionsv1.JSONSchemaProps{}
	var walk func(path string, s apiextensionsv1.JSONSchemaProps)
	walk = func(path string, s apiextensionsv1.JSONSchemaProps) {
		names := slices.Sorted(maps.Keys(s.Properties))
		switch {
		case slices.Contains(kubernetesTypes, path), strings.HasSuffix(path, "Selector"), slices.Equal(names, []string{"key", "name"}), slices.Equal(names, []string{"name"}):
			found[path] = s
		case len(names) > 0:
			for _, name := range names {
				walk(strings.TrimPrefix(path+"."+name, "."), s.Properties[name])
			}
		case s.Items != nil:
			walk(path+"[]", *s.Items.Schema)
		default:
			found[path] = s
		}
	}
	walk("", crds[0].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"])
	return found
}

// A tenant with no more rights than to make RelayPools cannot read a Secret, run an image, or reach
// a node with any field.
func TestNoFieldGivesATenantAccess(t *testing.T) {
	t.Parallel()
	known := specFields(t)
	classified := map[string]bool{}
	for class, paths := range classes {
		for path := range strings.FieldsSeq(paths) {
			schema, exists := known[path]
			if !exists || classified[path] {
				t.Errorf("spec.%s is no field, or has two classes: correct classes", path)
				continue
			}
			classified[path] = true
			t.Run(path, func(t *testing.T) {
				t.Parallel()
				checkClass(t, class, path, schema)
			})
		}
	}
	for path := range known {
		if !classified[path] {
			t.Errorf("spec.%s has no class: decide what a tenant could do with it and what stops it, and add it to classes", path)
		}
	}
}

func checkClass(t *testing.T, class, path string, schema apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	field, _, _ := strings.Cut(strings.TrimPrefix(path, "template."), "[]")
	switch class {
	case number:
		if schema.Type != "integer" || schema.Minimum == nil || schema.Maximum == nil {
			t.Error("the schema says that it is no number with bounds")
		}
	case choice:
		if schema.Type != "boolean" && len(schema.Enum) == 0 {
			t.Error("the schema has no list of the words")
		}
	case exposure:
		// TestWithheldFieldsAreNamed shows the rest.
		if name := strings.Split(path, ".")[1]; !slices.Contains(tenancy.APIFields(), name) {
			t.Error("the installer cannot withhold it")
		}
	case text, address:
		if strings.HasSuffix(path, "Selector") {
			return // it selects pods that this fleet may call
		}
		if schema.Type != "string" {
			t.Error("the schema says that it is no text")
		}
		checkNamesNothing(t, path)
	case peers: // the fleet's own NetworkPolicy and monitoring objects
	case secret, pullSecret:
		checkLabelNeeded(t, path, "Secret")
	case configMap:
		checkLabelNeeded(t, path, "ConfigMap")
	case image:
		policy := tenancy.Policy{Images: []string{"registry.example/relay"}}
		if faults := policy.Faults(&specWith(t, path, "evil.example/relay:1").Spec, "own:1"); len(faults) != 1 {
			t.Errorf("the faults of a foreign image are %q, want one", faults)
		}
	case placement, pod:
		// TestWithheldFieldsAreNamed and TestALimitedPodTemplateGivesNoAccess show the rest.
		if !slices.Contains(tenancy.TemplateFields(), field) {
			t.Error("the installer cannot withhold it")
		}
	}
	if class == pod {
		for kind, volume := range map[string]string{"Secret": `{"name": "v", "secret": {"secretName": "theirs"}}`, "ConfigMap": `{"name": "v", "configMap": {"name": "theirs"}}`} {
			var template any
			if err := json.Unmarshal([]byte(`{"spec": {"volumes": [`+volume+`]}}`), &template); err != nil {
				t.Fatal(err)
			}
			checkRefused(t, specWith(t, path, template), kind)
		}
	}
}

// specWith returns a RelayPool whose spec has nothing but this field.
func specWith(t *testing.T, path string, value any) *v1alpha1.RelayPool {
	t.Helper()
	steps := strings.Split(path, ".")
	for i := len(steps) - 1; i >= 0; i-- {
		name, list := strings.CutSuffix(steps[i], "[]")
		if list {
			value = []any{value}
		}
		value = map[string]any{name: value}
	}
	content, err := json.Marshal(map[string]any{"spec": value})
	if err != nil {
		t.Fatal(err)
	}
	pool := &v1alpha1.RelayPool{}
	if err := json.Unmarshal(content, pool); err != nil {
		t.Fatal(err)
	}
	pool.Name, pool.Namespace = "mine", "pools"
	return pool
}

func checkLabelNeeded(t *testing.T, path, kind string) {
	t.Helper()
	checkRefused(t, specWith(t, path, map[string]any{"name": "theirs", "key": "x"}), kind)
}

// checkRefused requires that the operator refuses the object named theirs, for want of its label.
func checkRefused(t *testing.T, pool *v1alpha1.RelayPool, kind string) {
	t.Helper()
	for _, labelled := range []bool{false, true} {
		reader := objects{}
		if labelled {
			reader.labels = map[string]string{v1alpha1.LabelUsableBy: v1alpha1.UsableByAny}
		}
		resolver, err := refs.NewResolver(refs.Options{Reader: reader, Now: time.Now, Random: func() float64 { return 0 }, Policy: tenancy.Policy{RequireLabel: true}})
		if err != nil {
			t.Fatal(err)
		}
		facts, err := resolver.Resolve(t.Context(), pool)
		if err != nil {
			t.Fatal(err)
		}
		refused := slices.ContainsFunc(facts.Problems, func(p refs.Problem) bool {
			return p.Name == "theirs" && string(p.Kind) == kind && (p.Reason == v1alpha1.ReasonSecretNotUsable || p.Reason == v1alpha1.ReasonConfigMapNotUsable)
		})
		if refused == labelled {
			t.Errorf("with the label %t: the %s is refused: %t; the problems are %v", labelled, kind, refused, facts.Problems)
		}
	}
}

// objects is a cluster in which every Secret and ConfigMap exists.
type objects struct {
	client.Reader
	labels map[string]string
}

func (o objects) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	into.SetName(key.Name)
	into.SetUID("1")
	into.SetLabels(o.labels)
	return nil
}

// checkNamesNothing requires that a text gets no further in pods than into values of variables,
// paths of files, and the audience of a token: not into names of Secrets, images or nodes.
func checkNamesNothing(t *testing.T, path string) {
	t.Helper()
	const canary = "canary"
	pool := specWith(t, path, canary)
	for _, signer := range pool.Spec.FeePayers.Signers {
		if v := signer.VaultTransit; v != nil && v.Kubernetes == nil {
			v.TokenSecretRef = &v1alpha1.SecretKeyReference{Name: "token", Key: "token"}
		}
	}
	var template corev1.PodTemplateSpec
	for _, o := range build.Objects(build.Input{Pool: pool, Image: "relay"}) {
		if o.Kind != build.KindDeployment {
			continue
		}
		content, err := json.Marshal(o.Config)
		if err != nil {
			t.Fatal(err)
		}
		var deployment appsv1.Deployment
		if err := json.Unmarshal(content, &deployment); err != nil {
			t.Fatal(err)
		}
		template = deployment.Spec.Template
	}
	content, err := json.Marshal(template)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(content, &tree); err != nil {
		t.Fatal(err)
	}
	harmless := []string{"value", "path", "audience"}
	var walk func(at, name string, value any)
	walk = func(at, name string, value any) {
		switch v := value.(type) {
		case map[string]any:
			for key, field := range v {
				if strings.Contains(key, canary) {
					t.Errorf("%s.%s comes from the field", at, key)
				}
				walk(at+"."+key, key, field)
			}
		case []any:
			for i, entry := range v {
				walk(fmt.Sprintf("%s[%d]", at, i), name, entry)
			}
		case string:
			if strings.Contains(v, canary) && !slices.Contains(harmless, name) {
				t.Errorf("%s comes from the field", at)
			}
		}
	}
	walk("pod", "", tree)
}
