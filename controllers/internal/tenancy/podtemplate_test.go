package tenancy

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

const allowedImage = "registry.example/tool"

// compliant is a sidecar that a limited RelayPool may have.
const compliant = "name: a, image: '" + allowedImage + ":1', securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}"

func specWithPod(t *testing.T, pod string) *v1alpha1.RelayPoolSpec {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(pod))
	if err != nil {
		t.Fatal(err)
	}
	spec := &v1alpha1.RelayPoolSpec{Template: v1alpha1.Template{PodTemplate: &runtime.RawExtension{Raw: raw}}}
	if faults := build.PodTemplateFaults(&v1alpha1.RelayPool{Spec: *spec}); len(faults) > 0 {
		t.Fatalf("the template is invalid: %q", faults)
	}
	return spec
}

// A pool's own label is no fault of its template, but must not end the check of its security.
func TestAPodTemplateWithTheOperatorsLabelIsChecked(t *testing.T) {
	t.Parallel()
	raw, err := yaml.YAMLToJSON([]byte("{metadata: {labels: {app.kubernetes.io/instance: shield}}, spec: {containers: [{name: a, image: 'registry.example/tool:1', securityContext: {privileged: true}}]}}"))
	if err != nil {
		t.Fatal(err)
	}
	pool := &v1alpha1.RelayPool{Spec: v1alpha1.RelayPoolSpec{Template: v1alpha1.Template{PodTemplate: &runtime.RawExtension{Raw: raw}}}}
	pool.Name = "shield"
	if faults := build.PodTemplateFaults(pool); len(faults) > 0 {
		t.Fatalf("the template has the faults %q of its own, so the test shows nothing", faults)
	}
	policy := Policy{Images: []string{"registry.example/tool"}}
	if faults := policy.Faults(&pool.Spec, "own:1"); len(faults) == 0 {
		t.Error("a privileged container has no fault")
	}
}

func TestALimitedPodTemplateGivesNoAccess(t *testing.T) {
	t.Parallel()
	container := func(fields string) string { return "{spec: {containers: [{" + compliant + ", " + fields + "}]}}" }
	volume := func(source string) string { return "{spec: {volumes: [{name: v, " + source + "}]}}" }
	images := Policy{Images: []string{allowedImage}}
	withheld := func(fields ...string) Policy { return Policy{Withheld: fields} }
	tests := map[string]struct {
		pod    string
		policy Policy
		want   string // a part of a fault; empty when there is none
	}{
		"a sidecar of an allowed image":                    {container("env: [{name: A, value: b}]"), images, ""},
		"the operator's own image in a sidecar":            {"{spec: {containers: [{" + strings.Replace(compliant, allowedImage+":1", "own:1", 1) + "}]}}", images, ""},
		"a foreign image in a sidecar":                     {"{spec: {containers: [{" + strings.Replace(compliant, allowedImage, "evil.example/tool", 1) + "}]}}", images, "spec.containers[a].image: expected an image of registry.example/tool, received evil.example/tool"},
		"a foreign image in an init container":             {"{spec: {initContainers: [{" + strings.Replace(compliant, allowedImage, "evil.example/tool", 1) + "}]}}", images, "spec.initContainers[a].image: expected"},
		"a foreign image as a volume":                      {volume("image: {reference: 'evil.example/tool:1'}"), images, "spec.volumes[v].image: "},
		"a path of the node":                               {volume("hostPath: {path: /}"), images, "spec.volumes[v].hostPath: "},
		"a neighbour's disk":                               {volume("persistentVolumeClaim: {claimName: theirs}"), images, "spec.volumes[v].persistentVolumeClaim: "},
		"a copy of a neighbour's disk":                     {volume("ephemeral: {volumeClaimTemplate: {spec: {dataSource: {kind: PersistentVolumeClaim, name: theirs}}}}"), images, "spec.volumes[v].ephemeral: "},
		"a driver of the node":                             {volume("csi: {driver: d}"), images, "spec.volumes[v].csi: "},
		"a share by its address":                           {volume("nfs: {server: s, path: /}"), images, "spec.volumes[v].nfs: "},
		"a token of the service account":                   {volume("projected: {sources: [{serviceAccountToken: {path: token}}]}"), images, "spec.volumes[v].projected.sources[0].serviceAccountToken: "},
		"an empty folder":                                  {volume("emptyDir: {}"), images, ""},
		"a Secret, which Refuse checks":                    {volume("secret: {secretName: x}"), images, ""},
		"the node's network":                               {"{spec: {hostNetwork: true}}", images, "spec.hostNetwork: "},
		"the node's processes":                             {"{spec: {hostPID: true}}", images, "spec.hostPID: "},
		"the node's shared memory":                         {"{spec: {hostIPC: true}}", images, "spec.hostIPC: "},
		"the node's users":                                 {"{spec: {hostUsers: true}}", images, "spec.hostUsers: "},
		"a node by its name":                               {"{spec: {nodeName: control-plane}}", images, "spec.nodeName: "},
		"another scheduler":                                {"{spec: {schedulerName: s}}", images, "spec.schedulerName: "},
		"another runtime":                                  {"{spec: {runtimeClassName: s}}", images, "spec.runtimeClassName: "},
		"a number for a priority":                          {"{spec: {priority: 1}}", images, "spec.priority: "},
		"a device":                                         {"{spec: {resourceClaims: [{name: gpu, resourceClaimName: gpu}]}}", images, "spec.resourceClaims: "},
		"the relay's processes in a sidecar's view":        {"{spec: {shareProcessNamespace: true}}", images, "spec.shareProcessNamespace: "},
		"a privileged sidecar":                             {"{spec: {containers: [{name: a, securityContext: {privileged: true}}]}}", images, "received privileged"},
		"a privileged relay":                               {"{spec: {containers: [{name: relay, securityContext: {privileged: true, allowPrivilegeEscalation: true}}]}}", images, "received privileged"},
		"a capability":                                     {"{spec: {containers: [{name: relay, securityContext: {capabilities: {add: [SYS_ADMIN]}}}]}}", images, "SYS_ADMIN"},
		"a port of the node":                               {container("ports: [{containerPort: 1, hostPort: 1}]"), images, "received hostPort"},
		"root":                                             {"{spec: {securityContext: {runAsUser: 0}}}", images, "runAsUser=0"},
		"a system call filter that is off":                 {"{spec: {securityContext: {seccompProfile: {type: Unconfined}}}}", images, "seccompProfile"},
		"no security context":                              {"{spec: {securityContext: null}}", images, "runAsNonRoot"},
		"a user id that the platform assigns":              {"{spec: {securityContext: {runAsUser: null}}}", images, ""},
		"a sidecar that has no security context":           {"{spec: {containers: [{name: a, image: 'registry.example/tool:1'}]}}", images, "allowPrivilegeEscalation"},
		"DNS of their own":                                 {"{spec: {dnsConfig: {options: [{name: ndots, value: '1'}]}, hostAliases: [{ip: 10.0.0.1, hostnames: [a]}]}}", images, ""},
		"tolerations, which are withheld":                  {"{spec: {tolerations: [{operator: Exists}]}}", withheld("tolerations"), "spec.tolerations: this operator lets RelayPools not set tolerations of spec.template"},
		"tolerations, which are allowed":                   {"{spec: {tolerations: [{operator: Exists}]}}", withheld("affinity"), ""},
		"a node selector, which is withheld":               {"{spec: {nodeSelector: {a: b}}}", withheld("nodeSelector"), "spec.nodeSelector: "},
		"an affinity, which is withheld":                   {"{spec: {affinity: {podAffinity: {}}}}", withheld("affinity"), "spec.affinity: "},
		"topology, where affinity is withheld":             {"{spec: {topologySpreadConstraints: [{topologyKey: a, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]}}", withheld("affinity"), "spec.topologySpreadConstraints: "},
		"a priority class, which is withheld":              {"{spec: {priorityClassName: a}}", withheld("priorityClassName"), "spec.priorityClassName: "},
		"labels, which are withheld":                       {"{metadata: {labels: {a: b}}}", withheld("labels"), "metadata.labels: "},
		"annotations, which are withheld":                  {"{metadata: {annotations: {a: b}}}", withheld("annotations"), "metadata.annotations: "},
		"resources of a sidecar, which are withheld":       {container("resources: {requests: {cpu: '100'}}"), withheld("resources"), "spec.containers[a].resources: "},
		"a path of the node, where labels are required":    {volume("hostPath: {path: /}"), Policy{RequireLabel: true}, "spec.volumes[v].hostPath: "},
		"a path of the node, in a cluster with one tenant": {volume("hostPath: {path: /}"), Policy{}, ""},
		"a foreign image, in a cluster with one tenant":    {"{spec: {containers: [{name: a, image: 'evil.example/tool:1'}]}}", Policy{}, ""},
		"anything, where podTemplate is withheld":          {"{spec: {dnsPolicy: Default}}", withheld(FieldPodTemplate), "spec.template.podTemplate: this operator lets RelayPools set only the fields"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tc.policy.Faults(specWithPod(t, tc.pod), "own:1")
			if tc.want == "" && len(got) > 0 || tc.want != "" && !strings.Contains(strings.Join(got, "\n"), tc.want) {
				t.Errorf("the faults are %q, want %q", got, tc.want)
			}
		})
	}
}

// Each field of Kubernetes' pods is either known, or refused. The list names what is known to be
// refused, so that a new field is looked at.
func TestEveryFieldOfPodsIsDecided(t *testing.T) {
	t.Parallel()
	refused := strings.Fields(`activeDeadlineSeconds automountServiceAccountToken enableServiceLinks ephemeralContainers evictionResponders
		hostIPC hostNetwork hostPID hostUsers hostname hostnameOverride nodeName os overhead preemptionPolicy priority
		readinessGates resourceClaims resources restartPolicy runtimeClassName schedulerName schedulingGates schedulingGroup serviceAccount
		serviceAccountName setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds`)
	checkDecided(t, fields(corev1.PodSpec{}), append(slices.Collect(maps.Keys(tenantPodFields)), refused...))
	refusedVolumes := strings.Fields(`awsElasticBlockStore azureDisk azureFile cephfs cinder csi ephemeral fc flexVolume flocker
		gcePersistentDisk gitRepo glusterfs hostPath image iscsi nfs persistentVolumeClaim photonPersistentDisk portworxVolume
		quobyte rbd scaleIO storageos vsphereVolume`)
	checkDecided(t, fields(corev1.VolumeSource{}), append(slices.Clone(tenantVolumes), refusedVolumes...))
	checkDecided(t, fields(corev1.VolumeProjection{}), append(slices.Clone(tenantSources), "serviceAccountToken", "clusterTrustBundle", "podCertificate"))
}

func checkDecided(t *testing.T, of map[string]reflect.Value, decided []string) {
	t.Helper()
	for name := range of {
		if !slices.Contains(decided, name) {
			t.Errorf("%s is a new field: decide whether a tenant may set it", name)
		}
	}
	for _, name := range decided {
		if _, ok := of[name]; !ok {
			t.Errorf("%s is no field: remove it", name)
		}
	}
}
