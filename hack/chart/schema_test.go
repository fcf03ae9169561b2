package main

import (
	"strings"
	"testing"

	"github.com/relaypool/relaypool/hack/chart/release"
)

// Helm reports errors in values, with the key, before it contacts a cluster.
func TestInvalidValuesAreRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		values string
		// want is part of the error message, or empty if the values are accepted.
		want string
	}{
		"nothing is set":                           {"{}", ""},
		"global values of a parent chart":          {"global: {anything: goes}", ""},
		"an unknown key at the top":                {"replicas: 2", "additional properties 'replicas' not allowed"},
		"an unknown key in a group":                {"operator: {replica: 2}", "additional properties 'replica' not allowed"},
		"an unknown key deep down":                 {"operator: {image: {name: x}}", "'/operator/image'"},
		"an additional variable":                   {"operator: {extraEnv: [{name: HTTPS_PROXY, value: b}]}", ""},
		"an additional variable of the operator":   {"operator: {extraEnv: [{name: RELAYPOOL_RESYNC, value: 1h}]}", "operator.extraEnv has RELAYPOOL_RESYNC: variables of the operator itself come from its values"},
		"an additional variable without a name":    {"operator: {extraEnv: [{value: b}]}", "missing property 'name'"},
		"an additional flag":                       {"operator: {extraArgs: [--resync=1h]}", ""},
		"a flag that is set already":               {"operator: {extraArgs: [--health-listen=none]}", "operator.extraArgs has --health-listen, which other values set"},
		"a flag that needs roles":                  {"operator: {extraArgs: [--cluster-wide]}", "operator.extraArgs has --cluster-wide, which other values set"},
		"an argument that is not a flag":           {"operator: {extraArgs: [plan]}", "does not match pattern"},
		"a volume without a name":                  {"operator: {extraVolumes: [{emptyDir: {}}]}", "missing property 'name'"},
		"an unknown field of a security context":   {"operator: {securityContext: {user: 1}}", "additional properties 'user' not allowed"},
		"a security context without a user":        {"operator: {podSecurityContext: {runAsUser: null, runAsGroup: null}}", ""},
		"a name that is too long":                  {"nameOverride: " + strings.Repeat("a", 21), "does not match pattern"},
		"an object as text":                        {"extraObjects: ['{apiVersion: v1, kind: ConfigMap, metadata: {name: more}}']", ""},
		"an object that is a number":               {"extraObjects: [1]", "got number, want string or object"},
		"replicas in words":                        {"operator: {replicas: two}", "got string, want null or integer"},
		"no replica":                               {"operator: {replicas: 0}", "minimum: got 0, want 1"},
		"replicas by default":                      {"operator: {replicas: null}", ""},
		"a number for a boolean":                   {"externalMetrics: {enabled: 1}", "got number, want boolean"},
		"a word for a boolean":                     {"externalMetrics: {enabled: \"yes\"}", "got string, want boolean"},
		"an unknown pull policy":                   {"operator: {image: {pullPolicy: Sometimes}}", "value must be one of 'Always', 'IfNotPresent', 'Never'"},
		"an unknown log level":                     {"operator: {log: {level: trace}}", "value must be one of"},
		"a digest without its algorithm":           {"operator: {image: {digest: abc}}", "does not match pattern"},
		"a digest":                                 {"relay: {image: {digest: 'sha256:" + strings.Repeat("0f", 32) + "'}}", ""},
		"a tag with a space":                       {"relay: {image: {tag: 'a b'}}", "does not match pattern"},
		"a registry with a scheme and a space":     {"imageRegistry: 'https: //x'", "does not match pattern"},
		"a registry with a port and a path":        {"imageRegistry: registry.your.org:5000/mirror", ""},
		"a registry that ends in a slash":          {"imageRegistry: registry.your.org/", "does not match pattern"},
		"a pull secret by its name alone":          {"imagePullSecrets: [mirror]", "got string, want object"},
		"an invalid namespace":                     {"namespaces: [Team_A]", "does not match pattern"},
		"one namespace without a list":             {"namespaces: team-a", "got string, want array"},
		"a word for clusterWide":                   {"clusterWide: \"yes\"", "got string, want boolean"},
		"a repository of tenants with a space":     {"tenants: {images: ['a b']}", "does not match pattern"},
		"images below a path":                      {"tenants: {images: ['registry.your.org:5000/relaypool/*']}", ""},
		"an unknown field of the template":         {"tenants: {templateFields: [hostNetwork]}", "does not match pattern"},
		"a field of the API that is no exposure":   {"tenants: {apiFields: [keysSecretRef]}", "does not match pattern"},
		"every field of the template":              {"tenants: {templateFields: null}", ""},
		"a usable Secret without its namespace":    {"tenants: {requireLabel: true, usable: [rpc]}", "does not match pattern"},
		"an interval without a unit":               {"operator: {refsInterval: '30'}", "does not match pattern"},
		"an interval":                              {"operator: {refsInterval: 1m30s}", ""},
		"a toleration with an unknown field":       {"operator: {tolerations: [{keys: x}]}", "additional properties 'keys' not allowed"},
		"an unknown field of resources":            {"operator: {resources: {request: {cpu: 1}}}", "additional properties 'request' not allowed"},
		"a quantity as a number":                   {"operator: {resources: {requests: {cpu: 1}}}", ""},
		"an affinity with an unknown field":        {"operator: {affinity: {nodeAffinities: {}}}", "additional properties 'nodeAffinities' not allowed"},
		"a topology spread without its key":        {"operator: {topologySpreadConstraints: [{maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]}", "missing property 'topologyKey'"},
		"a label that is not a string":             {"extraLabels: {a: 1}", "got number, want string"},
		"a RelayPool without a spec":               {"relayPools: {shield: {}}", "missing property 'spec'"},
		"a RelayPool with an unknown field":        {"relayPools: {shield: {spec: {" + inline + ", replica: 2}}}", "additional properties 'replica' not allowed"},
		"a RelayPool with an unknown field inside": {"relayPools: {shield: {spec: {" + inline + ", api: {rate: 2}}}}", "additional properties 'rate' not allowed"},
		"a RelayPool with a word for a number":     {"relayPools: {shield: {spec: {" + inline + ", replicas: two}}}", "got string, want integer"},
		"a RelayPool":                              {"relayPools: {shield: {spec: {" + inline + "}}}", ""},
		"a RelayPool with a name that is too long": {"relayPools: {" + strings.Repeat("a", 41) + ": {spec: {" + inline + "}}}", "additional properties 'aaa"},
		"a RelayPool with a name of forty letters": {"relayPools: {" + strings.Repeat("a", 40) + ": {spec: {" + inline + "}}}", ""},
		"a RelayPool with a number for a name":     {"relayPools: {1: {spec: {" + inline + "}}}", "additional properties '1' not allowed"},
		"a RelayPool without a database":           {"relayPools: {shield: {spec: {replicas: 1}}}", "missing properties 'database'"},
		"a RelayPool outside of namespaces":        {"namespaces: [team-a]\nrelayPools: {shield: {spec: {" + inline + "}}}", "relayPools.shield is in namespace relaypool-system, which the operator would not look at: namespaces has only team-a"},
		"two operators and no Lease":               {"leaderElection: {enabled: false}\noperator: {replicas: 2}", "two operators would work against each other"},
		"external metrics and no Lease":            {"leaderElection: {enabled: false}\nexternalMetrics: {enabled: true}", "two operators would work against each other"},
		"an unknown field of the monitor's TLS":    {"monitoring: {serviceMonitor: {tlsConfig: {insecure: true}}}", "additional properties 'insecure' not allowed"},
		"an egress rule with an unknown field":     {"networkPolicy: {egress: [{too: []}]}", "additional properties 'too' not allowed"},
		"an egress rule":                           {"networkPolicy: {egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8}}], ports: [{port: 443}, {port: https}]}]}", ""},
		"a reserved label":                         {"extraLabels: {app.kubernetes.io/name: mine}", "/extraLabels/app.kubernetes.io~1name': false schema"},
		"a reserved pod label":                     {"operator: {podLabels: {app.kubernetes.io/name: mine}}", "/operator/podLabels/app.kubernetes.io~1name': false schema"},
		"another label with a domain":              {"operator: {podLabels: {topology.kubernetes.io/zone: a}}", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := release.Render(loaded(t), parsed(t, tc.values), release.Options{})
			if tc.want == "" {
				must(t, err)
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v\nwant one with: %s", err, tc.want)
			}
		})
	}
}

// inline is a RelayPool's spec on one line.
var inline = strings.TrimSuffix(strings.ReplaceAll(strings.TrimSpace(pool), "\n", ","), ",")
