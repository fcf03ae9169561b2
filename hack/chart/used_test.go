package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/hack/chart/release"
)

// changes gives each value another content than the values everything.
func changes() map[string]string {
	return map[string]string{
		"imageRegistry":                               `other.org`,
		"imagePullSecrets":                            `[{name: other}]`,
		"extraLabels":                                 `{another: label}`,
		"fullnameOverride":                            `other`,
		"nameOverride":                                `other`,
		"relay.image.registry":                        `other.org`,
		"relay.image.repository":                      `other/relay`,
		"relay.image.tag":                             `9.9.9`,
		"relay.image.digest":                          `sha256:` + strings.Repeat("b2", 32),
		"namespaces":                                  `[team-a, team-c]`,
		"clusterWide":                                 `true`,
		"tenants.images":                              `[other.org/relay]`,
		"tenants.templateFields":                      `[]`,
		"tenants.apiFields":                           `[]`,
		"tenants.requireLabel":                        `false`,
		"tenants.usable":                              `[team-a/other]`,
		"crds.upgrade":                                `false`,
		"relayPools":                                  `{}`,
		"operator.replicas":                           `5`,
		"operator.image.registry":                     `other.org`,
		"operator.image.repository":                   `other/operator`,
		"operator.image.tag":                          `9.9.9`,
		"operator.image.digest":                       `sha256:` + strings.Repeat("b2", 32),
		"operator.image.pullPolicy":                   `Never`,
		"operator.concurrentReconciles":               `99`,
		"operator.checkWorkers":                       `99`,
		"operator.refsInterval":                       `99s`,
		"operator.resync":                             `99s`,
		"operator.log.level":                          `warn`,
		"operator.log.format":                         `text`,
		"operator.metrics.enabled":                    `false`,
		"operator.metrics.certificateSecret":          `other`,
		"operator.resources":                          `{requests: {cpu: 99m}}`,
		"operator.extraArgs":                          `[--another]`,
		"operator.extraEnv":                           `[{name: ANOTHER}]`,
		"operator.extraVolumes":                       `[{name: another}]`,
		"operator.extraVolumeMounts":                  `[{name: another, mountPath: /another}]`,
		"operator.podSecurityContext":                 `{runAsUser: 99}`,
		"operator.securityContext":                    `{runAsUser: 99}`,
		"operator.annotations":                        `{another: note}`,
		"operator.revisionHistoryLimit":               `99`,
		"operator.podLabels":                          `{another: label}`,
		"operator.podAnnotations":                     `{another: note}`,
		"operator.nodeSelector":                       `{another: node}`,
		"operator.tolerations":                        `[{key: other}]`,
		"operator.affinity":                           `{}`,
		"operator.topologySpreadConstraints":          `[]`,
		"operator.priorityClassName":                  `other`,
		"podDisruptionBudget.enabled":                 `false`,
		"leaderElection.enabled":                      `false`,
		"leaderElection.leaseName":                    `other`,
		"leaderElection.leaseDuration":                `99s`,
		"leaderElection.renewDeadline":                `9s`,
		"leaderElection.retryPeriod":                  `9s`,
		"rbac.create":                                 `false`,
		"rbac.aggregate":                              `false`,
		"serviceAccount.create":                       `false`,
		"serviceAccount.name":                         `other`,
		"serviceAccount.annotations":                  `{another: note}`,
		"externalMetrics.enabled":                     `false`,
		"externalMetrics.hpaServiceAccount.name":      `other`,
		"externalMetrics.hpaServiceAccount.namespace": `other`,
		"monitoring.serviceMonitor.enabled":           `false`,
		"monitoring.serviceMonitor.labels":            `{another: label}`,
		"monitoring.serviceMonitor.interval":          `99s`,
		"monitoring.serviceMonitor.authorization":     `{credentials: {name: other, key: token}}`,
		"monitoring.serviceMonitor.tlsConfig":         `{serverName: other}`,
		"monitoring.prometheusRule.enabled":           `false`,
		"monitoring.prometheusRule.labels":            `{another: label}`,
		"monitoring.dashboards.enabled":               `false`,
		"monitoring.dashboards.labels":                `{another: label}`,
		"monitoring.dashboards.annotations":           `{another: note}`,
		"monitoring.dashboards.folder":                `Other`,
		"extraObjects":                                `[]`,
		"networkPolicy.enabled":                       `false`,
		"networkPolicy.egress":                        `[{to: [{ipBlock: {cidr: 10.0.0.0/8}}]}]`,
		"networkPolicy.metricsNamespaceLabels":        `{another: label}`,
	}
}

// valuesOf returns the path of each value in the chart's schema, by the value's name. Groups
// of values are left out.
func valuesOf(t *testing.T) map[string][]string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(chartPath, "values.schema.json"))
	must(t, err)
	var schema map[string]any
	must(t, yaml.Unmarshal(content, &schema))
	found := map[string][]string{}
	var collect func(map[string]any, []string)
	collect = func(group map[string]any, path []string) {
		for key, value := range group {
			path := append(slices.Clone(path), key)
			schema, _ := value.(map[string]any)
			if inside, ok := schema["properties"].(map[string]any); ok {
				collect(inside, path)
			} else if path[0] != "global" {
				found[strings.Join(path, ".")] = path
			}
			if doc, _ := schema["description"].(string); doc == "" && schema["properties"] == nil {
				t.Errorf("%s has no comment that says what it does", strings.Join(path, "."))
			}
		}
	}
	collect(schema["properties"].(map[string]any), nil)
	return found
}

// Every value must change the rendered objects.
func TestEveryValueChangesTheRenderedObjects(t *testing.T) {
	t.Parallel()
	untested := changes()
	for name, path := range valuesOf(t) {
		change, ok := untested[name]
		if !ok {
			t.Errorf("%s is in no test: add it to changes", name)
			continue
		}
		delete(untested, name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if before, after := renderedWith(t, path, ""), renderedWith(t, path, change); before == after {
				t.Errorf("%s set to %s does not change the rendered objects", name, change)
			}
		})
	}
	for name := range untested {
		t.Errorf("%s is not a value of the chart: delete it from changes", name)
	}
}

// renderedWith returns the rendered text of the values everything, with one value changed
// if change is not empty.
func renderedWith(t *testing.T, path []string, change string) string {
	t.Helper()
	values := parsed(t, everything)
	switch name := strings.Join(path, "."); name {
	case "leaderElection.enabled":
		// Leader election can be disabled only for one replica.
		group(values, "operator")["replicas"] = 1
	case "operator.metrics.enabled":
		// Without metrics, the chart refuses ServiceMonitors and alerts.
		group(group(values, "monitoring"), "serviceMonitor")["enabled"] = false
		group(group(values, "monitoring"), "prometheusRule")["enabled"] = false
	case "clusterWide":
		// clusterWide excludes namespaces.
		if change != "" {
			delete(values, "namespaces")
		}
	case "tenants.requireLabel":
		// Without requireLabel, the chart refuses a list of usable Secrets.
		delete(group(values, "tenants"), "usable")
	case "operator.image.registry", "relay.image.registry":
		delete(values, "imageRegistry")
	}
	if change != "" {
		var value any
		must(t, yaml.Unmarshal([]byte(change), &value))
		at := values
		for _, key := range path[:len(path)-1] {
			at = group(at, key)
		}
		at[path[len(path)-1]] = value
	}
	objects, notes, err := release.Render(loaded(t), values, release.Options{Upgrade: true})
	must(t, err)
	text, err := yaml.Marshal(objects)
	must(t, err)
	return string(text) + notes
}

// group returns the group of values under key, which it adds if it is missing.
func group(in map[string]any, key string) map[string]any {
	inside, ok := in[key].(map[string]any)
	if !ok {
		inside = map[string]any{}
		in[key] = inside
	}
	return inside
}

// Every .Values.x of a template must be a value or a group of values of the chart. An unknown
// name would always be empty.
func TestTemplatesUseOnlyExistingValues(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, path := range valuesOf(t) {
		for i := range path {
			known[strings.Join(path[:i+1], ".")] = true
		}
	}
	uses := 0
	must(t, filepath.WalkDir(filepath.Join(chartPath, "templates"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		must(t, err)
		for _, use := range regexp.MustCompile(`\.Values\.([A-Za-z.]+)`).FindAllStringSubmatch(string(content), -1) {
			uses++
			if !known[strings.TrimSuffix(use[1], ".")] {
				t.Errorf("%s uses .Values.%s, which values.yaml does not have", d.Name(), use[1])
			}
		}
		return nil
	}))
	if uses < 50 {
		t.Errorf("%d uses of values were found, want at least 50", uses)
	}
}
