package build_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/controllers/internal/build"
)

// withPodTemplate returns the smallest input with a podTemplate, in YAML.
func withPodTemplate(t *testing.T, text string) build.Input {
	t.Helper()
	in := fixtures(t)["minimal"]
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	in.Pool.Spec.Template.PodTemplate = &runtime.RawExtension{Raw: raw}
	return in
}

// pods returns the pod templates of the fleet and of a rotation Job.
func pods(t *testing.T, in build.Input) (fleet, job corev1.PodTemplateSpec) {
	t.Helper()
	fleet = into[appsv1.Deployment](t, single(t, build.Objects(in), "Deployment")).Spec.Template
	o := build.RotationJob(in, build.Rotation{Step: build.StepDrain, From: in.Payers})
	return fleet, into[batchv1.Job](t, o).Spec.Template
}

func TestThePodTemplateIsMergedLast(t *testing.T) {
	t.Parallel()
	plain, _ := pods(t, fixtures(t)["minimal"])
	tests := map[string]struct {
		text string
		// want is what the merge changes in the fleet's pods.
		want func(*corev1.PodTemplateSpec)
		// onlyFleet: the pods of rotations do not get it.
		onlyFleet bool
	}{
		"a null takes the fixed user id away, for OpenShift": {
			"{spec: {securityContext: {runAsUser: null, runAsGroup: null, fsGroup: null}}}",
			func(p *corev1.PodTemplateSpec) {
				p.Spec.SecurityContext.RunAsUser, p.Spec.SecurityContext.RunAsGroup, p.Spec.SecurityContext.FSGroup = nil, nil, nil
			}, false},
		"a replacement takes it away too, where clients drop nulls": {
			"{spec: {securityContext: {$patch: replace, runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}}}",
			func(p *corev1.PodTemplateSpec) {
				p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true), SeccompProfile: p.Spec.SecurityContext.SeccompProfile}
			}, false},
		"labels and annotations are added": {
			"{metadata: {labels: {team: a}, annotations: {b: c, cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes: 'temporary-files,spool'}}}",
			func(p *corev1.PodTemplateSpec) {
				p.Labels["team"] = "a"
				if p.Annotations == nil {
					p.Annotations = map[string]string{}
				}
				p.Annotations["b"] = "c"
				p.Annotations["cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"] = "temporary-files,spool"
			}, false},
		"runtime class, priority and DNS are set": {
			"{spec: {runtimeClassName: gvisor, priorityClassName: high, dnsPolicy: None, dnsConfig: {nameservers: [10.0.0.1]}}}",
			func(p *corev1.PodTemplateSpec) {
				p.Spec.RuntimeClassName, p.Spec.PriorityClassName = ptr.To("gvisor"), "high"
				p.Spec.DNSPolicy, p.Spec.DNSConfig = corev1.DNSNone, &corev1.PodDNSConfig{Nameservers: []string{"10.0.0.1"}}
			}, false},
		"a topology constraint of the operator is changed by its key": {
			"{spec: {topologySpreadConstraints: [{topologyKey: kubernetes.io/hostname, maxSkew: 2}]}}",
			func(p *corev1.PodTemplateSpec) {
				for i := range p.Spec.TopologySpreadConstraints {
					if c := &p.Spec.TopologySpreadConstraints[i]; c.TopologyKey == corev1.LabelHostname {
						c.MaxSkew = 2
					}
				}
			}, true},
		"a sidecar is added behind the relay": {
			"{spec: {containers: [{name: shipper, image: 'shipper:1'}]}}",
			func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "shipper", Image: "shipper:1"})
			}, true},
		"an init container is added": {
			"{spec: {initContainers: [{name: fetch, image: 'fetch:1', restartPolicy: Always}]}}",
			func(p *corev1.PodTemplateSpec) {
				p.Spec.InitContainers = []corev1.Container{{Name: "fetch", Image: "fetch:1", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
			}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := withPodTemplate(t, tc.text)
			if faults := build.PodTemplateFaults(in.Pool); len(faults) > 0 {
				t.Fatalf("the faults are %q, want none", faults)
			}
			fleet, job := pods(t, in)
			_, plainJob := pods(t, fixtures(t)["minimal"])
			want := *plain.DeepCopy()
			tc.want(&want)
			if diff := cmp.Diff(want, fleet); diff != "" {
				t.Errorf("the fleet's pods (-want +got):\n%s", diff)
			}
			if !tc.onlyFleet {
				tc.want(&plainJob)
				if diff := cmp.Diff(plainJob, job); diff != "" {
					t.Errorf("the rotation's pods (-want +got):\n%s", diff)
				}
			} else if len(job.Spec.Containers) != 1 {
				t.Errorf("the rotation's pods have %d containers, want the relay alone", len(job.Spec.Containers))
			}
		})
	}
}

// A claim that only a sidecar mounts could keep a second pod from starting.
func TestARotationsPodsHaveOnlyVolumesThatTheyMount(t *testing.T) {
	t.Parallel()
	in := withPodTemplate(t, `
spec:
  containers: [{name: shipper, image: 'shipper:1', volumeMounts: [{name: spool, mountPath: /spool}]}]
  initContainers: [{name: fetch, image: 'fetch:1', volumeMounts: [{name: shared, mountPath: /shared}]}]
  volumes: [{name: spool, persistentVolumeClaim: {claimName: spool}}, {name: shared, emptyDir: {}}]`)
	if faults := build.PodTemplateFaults(in.Pool); len(faults) > 0 {
		t.Fatalf("the faults are %q, want none", faults)
	}
	fleet, job := pods(t, in)
	names := func(p corev1.PodTemplateSpec) (all []string) {
		for i := range p.Spec.Volumes {
			all = append(all, p.Spec.Volumes[i].Name)
		}
		slices.Sort(all)
		return all
	}
	if diff := cmp.Diff([]string{"files", "shared", "spool", "temporary-files"}, names(fleet)); diff != "" {
		t.Errorf("the fleet's volumes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"files", "shared"}, names(job)); diff != "" {
		t.Errorf("the rotation's volumes (-want +got):\n%s", diff)
	}
}

func TestTheRelaysContainerGetsVariablesAndMounts(t *testing.T) {
	t.Parallel()
	in := withPodTemplate(t, `
spec:
  containers:
  - name: relay
    imagePullPolicy: Always
    env: [{name: HTTPS_PROXY, value: "http://proxy.example:3128"}]
    envFrom: [{configMapRef: {name: proxy}}]
    volumeMounts: [{name: authorities, mountPath: /etc/ssl/certs, readOnly: true}]
    securityContext: {seLinuxOptions: {level: "s0:c1,c2"}}
  volumes: [{name: authorities, configMap: {name: authorities}}]`)
	if faults := build.PodTemplateFaults(in.Pool); len(faults) > 0 {
		t.Fatalf("the faults are %q, want none", faults)
	}
	plain, plainJob := pods(t, fixtures(t)["minimal"])
	fleet, job := pods(t, in)
	for name, pair := range map[string][2]corev1.PodTemplateSpec{"fleet": {plain, fleet}, "rotation": {plainJob, job}} {
		before, after := pair[0].Spec.Containers[0], pair[1].Spec.Containers[0]
		for _, v := range append(before.Env, corev1.EnvVar{Name: "HTTPS_PROXY", Value: "http://proxy.example:3128"}) {
			if !slices.ContainsFunc(after.Env, func(o corev1.EnvVar) bool { return cmp.Equal(o, v) }) {
				t.Errorf("%s: the variable %s is missing", name, v.Name)
			}
		}
		if len(after.VolumeMounts) != len(before.VolumeMounts)+1 || len(after.EnvFrom) != 1 || after.ImagePullPolicy != corev1.PullAlways || after.SecurityContext.SELinuxOptions == nil || !ptr.Deref(after.SecurityContext.ReadOnlyRootFilesystem, false) {
			t.Errorf("%s: the container is %+v, want it with what was added", name, after)
		}
	}
}

func TestThePodTemplateCannotBreakTheRelay(t *testing.T) {
	t.Parallel()
	relay := func(fields string) string { return "{spec: {containers: [{name: relay, " + fields + "}]}}" }
	tests := map[string]struct {
		text string
		want string // a part of the only fault
	}{
		"entries that a check would not see":         {"{spec: {$deleteFromPrimitiveList/containers: [{name: x, image: canary}]}}", "the directive $deleteFromPrimitiveList/containers is not for this field: use $patch"},
		"variables that a check would not see":       {relay("$deleteFromPrimitiveList/env: [{name: A, value: canary}]"), "the directive $deleteFromPrimitiveList/env is not for this field"},
		"an order of entries":                        {"{spec: {$setElementOrder/containers: [{name: a}]}}", "the directive $setElementOrder/containers is not for this field"},
		"a directive that would end the merge":       {"{spec: {$retainKeys: [{}]}}", "the directive $retainKeys is not for this field"},
		"a $patch that is no text":                   {"{spec: {$patch: [1]}}", "the directive $patch is not for this field"},
		"a prefix that makes the relay's variables":  {relay("envFrom: [{prefix: RELAYPOOL_, configMapRef: {name: canary}}]"), "spec.containers[relay].envFrom[0].prefix"},
		"a part of such a prefix":                    {relay("envFrom: [{prefix: RELAY, configMapRef: {name: canary}}]"), "spec.containers[relay].envFrom[0].prefix"},
		"no pod template but a list":                 {"[1]", "spec.template.podTemplate: expected an object"},
		"a field that pods do not have":              {"{spec: {containers: [{name: a, imagee: canary}]}}", "spec.template.podTemplate.spec.containers[0].imagee: a pod template has no such field"},
		"a field in the wrong case":                  {"{Spec: {}}", "spec.template.podTemplate.Spec: a pod template has no such field"},
		"a value of a wrong type":                    {"{spec: {hostNetwork: canary}}", "spec.hostNetwork: expected a value of the type bool"},
		"a quantity that is none":                    {"{spec: {containers: [{name: a, resources: {limits: {cpu: canary}}}]}}", "received a value of another type"},
		"a container without a name":                 {"{spec: {containers: [{image: canary}]}}", "cannot be merged"},
		"an unknown directive":                       {"{spec: {$patch: canary}}", "cannot be merged"},
		"a template that is too long":                {"{metadata: {annotations: {a: " + strings.Repeat("canary", 11000) + "}}}", "expected at most 65536 bytes of JSON"},
		"another image":                              {relay("image: canary"), "containers[relay].image: the operator sets it: set spec.image"},
		"another command":                            {relay("command: [canary]"), "containers[relay].command: "},
		"other arguments":                            {relay("args: [canary]"), "containers[relay].args: "},
		"another port":                               {relay("ports: [{containerPort: 1}]"), "containers[relay].ports: "},
		"no ports":                                   {relay("ports: null"), "containers[relay].ports: "},
		"other probes":                               {relay("readinessProbe: {periodSeconds: 100}"), "containers[relay].readinessProbe: "},
		"a probe at the start":                       {relay("startupProbe: {httpGet: {port: 1}}"), "containers[relay].startupProbe: "},
		"no hook before the stop":                    {relay("lifecycle: {$patch: delete}"), "containers[relay].lifecycle: "},
		"other resources":                            {relay("resources: {limits: {memory: 64Mi}}"), "containers[relay].resources: the operator sets it: set spec.template.resources"},
		"another folder":                             {relay("workingDir: /canary"), "containers[relay].workingDir: "},
		"a terminal":                                 {relay("tty: true"), "containers[relay].tty: "},
		"another value of a variable":                {relay("env: [{name: RELAYPOOL_LISTEN, value: canary}]"), "env[RELAYPOOL_LISTEN]: "},
		"a variable of the relay that is not set":    {relay("env: [{name: RELAYPOOL_ROUTER_URL, value: canary}]"), "env[RELAYPOOL_ROUTER_URL]: "},
		"another limit of Go's memory":               {relay("env: [{name: GOMEMLIMIT, value: canary}]"), "env[GOMEMLIMIT]: "},
		"a volume in place of the relay's files":     {relay("volumeMounts: [{mountPath: /etc/relaypool, name: canary}]"), "volumeMounts[/etc/relaypool]: "},
		"a mount inside of the relay's files":        {relay("volumeMounts: [{mountPath: /etc/relaypool/payers, name: canary}]"), "volumeMounts[/etc/relaypool/payers]: "},
		"a mount over temporary files":               {relay("volumeMounts: [{mountPath: /var/cache/relaypool/, name: canary}]"), "volumeMounts[/var/cache/relaypool/]: "},
		"a mount over the folder of the files":       {relay("volumeMounts: [{mountPath: /etc//, name: canary}]"), "volumeMounts[/etc//]: "},
		"a relay without files":                      {relay("volumeMounts: [{$patch: delete, mountPath: /etc/relaypool}]"), "volumeMounts[/etc/relaypool]: "},
		"other files":                                {"{spec: {volumes: [{name: files, emptyDir: {}}]}}", "spec.volumes[files]: "},
		"another folder for temporary files":         {"{spec: {volumes: [{name: temporary-files, hostPath: {path: /}}]}}", "spec.volumes[temporary-files]: "},
		"the files by other sources":                 {"{spec: {volumes: [{name: files, projected: {sources: []}}]}}", "spec.volumes[files]: "},
		"no relay":                                   {"{spec: {containers: [{$patch: delete, name: relay}]}}", "spec.containers[relay]: the operator sets it: keep this container"},
		"other containers in its place":              {"{spec: {containers: [{$patch: replace}, {name: canary, image: b}]}}", "spec.containers[relay]: "},
		"another service account":                    {"{spec: {serviceAccountName: canary}}", "spec.serviceAccountName: the operator sets it"},
		"another service account by its old name":    {"{spec: {serviceAccount: canary}}", "spec.serviceAccount: the operator sets it"},
		"a token of the API server":                  {"{spec: {automountServiceAccountToken: true}}", "spec.automountServiceAccountToken: "},
		"no word on the token of the API server":     {"{spec: {automountServiceAccountToken: null}}", "spec.automountServiceAccountToken: "},
		"variables of Services":                      {"{spec: {enableServiceLinks: true}}", "spec.enableServiceLinks: "},
		"another grace period":                       {"{spec: {terminationGracePeriodSeconds: 1}}", "spec.terminationGracePeriodSeconds: "},
		"a deadline":                                 {"{spec: {activeDeadlineSeconds: 1}}", "spec.activeDeadlineSeconds: "},
		"ephemeral containers":                       {"{spec: {ephemeralContainers: [{name: canary}]}}", "spec.ephemeralContainers: "},
		"a label that selects the fleet":             {"{metadata: {labels: {app.kubernetes.io/instance: canary}}}", "metadata.labels[app.kubernetes.io/instance]: "},
		"the fleet's label on the pods of rotations": {"{metadata: {labels: {app.kubernetes.io/component: relay}}}", "metadata.labels[app.kubernetes.io/component]: "},
		"no labels":                                  {"{metadata: {labels: {app.kubernetes.io/name: null}}}", "metadata.labels[app.kubernetes.io/name]: "},
		"the hash that rolls pods out":               {"{metadata: {annotations: {relaypool.dev/rollout-hash: canary}}}", "metadata.annotations[relaypool.dev/rollout-hash]: "},
		"a name":                                     {"{metadata: {name: canary}}", "metadata.name: the operator sets it: set labels and annotations only"},
		"a finalizer":                                {"{metadata: {finalizers: [canary]}}", "metadata.finalizers: "},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := withPodTemplate(t, tc.text)
			faults := build.PodTemplateFaults(in.Pool)
			if len(faults) != 1 || !strings.Contains(faults[0], tc.want) || !strings.HasPrefix(faults[0], build.PodTemplateField) {
				t.Errorf("the faults are %q, want one with %q", faults, tc.want)
			}
			if strings.Contains(strings.ReplaceAll(strings.Join(faults, ""), "[canary]", ""), "canary") {
				t.Errorf("the faults %q repeat a value", faults)
			}
		})
	}
}

func TestReferencesOfThePodTemplateAreFound(t *testing.T) {
	t.Parallel()
	const at = build.PodTemplateField + ".spec."
	tests := map[string]struct {
		spec string
		want []build.PodReference
	}{
		"a Secret as a volume":      {"{volumes: [{name: v, secret: {secretName: x}}]}", []build.PodReference{{Secret: true, Name: "x", Field: at + "volumes[v].secret"}}},
		"a ConfigMap as a volume":   {"{volumes: [{name: v, configMap: {name: x, optional: true}}]}", []build.PodReference{{Name: "x", Field: at + "volumes[v].configMap", Optional: true}}},
		"both in one volume":        {"{volumes: [{name: v, projected: {sources: [{secret: {name: x}}, {configMap: {name: other}}]}}]}", []build.PodReference{{Secret: true, Name: "x", Field: at + "volumes[v].projected.sources[0].secret"}, {Name: "other", Field: at + "volumes[v].projected.sources[1].configMap"}}},
		"a Secret of a driver":      {"{volumes: [{name: v, csi: {driver: d, nodePublishSecretRef: {name: x}}}]}", []build.PodReference{{Secret: true, Name: "x", Field: at + "volumes[v].csi.nodePublishSecretRef"}}},
		"a Secret of a file share":  {"{volumes: [{name: v, azureFile: {secretName: x, shareName: s}}]}", []build.PodReference{{Secret: true, Name: "x", Field: at + "volumes[v].azureFile"}}},
		"a Secret as a variable":    {"{containers: [{name: c, env: [{name: A, valueFrom: {secretKeyRef: {name: x, key: k}}}]}]}", []build.PodReference{{Secret: true, Name: "x", Field: at + "containers[c].env[A].valueFrom.secretKeyRef", Variables: true}}},
		"a ConfigMap as a variable": {"{initContainers: [{name: c, env: [{name: A, valueFrom: {configMapKeyRef: {name: x, key: k}}}]}]}", []build.PodReference{{Name: "x", Field: at + "initContainers[c].env[A].valueFrom.configMapKeyRef", Variables: true}}},
		"all values as variables":   {"{containers: [{name: relay, envFrom: [{secretRef: {name: x, optional: true}}, {configMapRef: {name: other}}]}]}", []build.PodReference{{Secret: true, Name: "x", Field: at + "containers[relay].envFrom[0].secretRef", Optional: true, Variables: true, RelayVariables: true}, {Name: "other", Field: at + "containers[relay].envFrom[1].configMapRef", Variables: true, RelayVariables: true}}},
		"variables with a prefix":   {"{containers: [{name: relay, envFrom: [{prefix: APP_, secretRef: {name: x}}]}]}", []build.PodReference{{Secret: true, Name: "x", Field: at + "containers[relay].envFrom[0].secretRef", Variables: true}}},
		"variables of a sidecar":    {"{containers: [{name: c, envFrom: [{secretRef: {name: x}}]}]}", []build.PodReference{{Secret: true, Name: "x", Field: at + "containers[c].envFrom[0].secretRef", Variables: true}}},
		"a pull secret":             {"{imagePullSecrets: [{name: x}]}", []build.PodReference{{Secret: true, Name: "x", Field: at + "imagePullSecrets[x]", Pull: true}}},
		"none":                      {"{dnsPolicy: Default}", nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := withPodTemplate(t, "{spec: "+tc.spec+"}")
			if diff := cmp.Diff(tc.want, build.PodReferences(&in.Pool.Spec)); diff != "" {
				t.Errorf("references (-want +got):\n%s", diff)
			}
		})
	}
}

// An empty podTemplate changes nothing, and no fleet from before it.
func TestAnEmptyPodTemplateChangesNothing(t *testing.T) {
	t.Parallel()
	plain, plainJob := pods(t, fixtures(t)["minimal"])
	fleet, job := pods(t, withPodTemplate(t, "{}"))
	for name, pair := range map[string][2]corev1.PodTemplateSpec{"fleet": {plain, fleet}, "rotation": {plainJob, job}} {
		before, err := json.Marshal(pair[0])
		if err != nil {
			t.Fatal(err)
		}
		after, err := json.Marshal(pair[1])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(before), string(after)); diff != "" {
			t.Errorf("%s (-without +with):\n%s", name, diff)
		}
	}
}
