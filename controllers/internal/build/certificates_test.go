package build_test

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/relay/contract"
)

// mountedCertificates returns the files with certificates and their keys that a pod mounts, each
// with its origin. Files of signers are left out.
func mountedCertificates(pod template) map[string]string {
	mounted := map[string]string{}
	files := slices.IndexFunc(pod.spec.Volumes, func(v corev1.Volume) bool { return v.Name == "files" })
	for _, source := range pod.spec.Volumes[files].Projected.Sources {
		for _, item := range items(source) {
			if extension := path.Ext(item.Path); strings.HasPrefix(item.Path, "signers/") || extension != ".crt" && path.Base(item.Path) != corev1.TLSPrivateKeyKey {
				continue
			}
			origin := "Secret "
			if source.Secret != nil {
				origin += source.Secret.Name
			} else {
				origin = "ConfigMap " + source.ConfigMap.Name
			}
			mounted[contract.Root+"/"+item.Path] = origin + " " + item.Key
		}
	}
	return mounted
}

func TestCertificatesAreMounted(t *testing.T) {
	t.Parallel()
	full := map[string]string{
		contract.DatabaseCAFile:               "Secret postgres-ca ca.crt",
		contract.DatabaseClientCertFile:       "Secret postgres-client tls.crt",
		contract.DatabaseClientKeyFile:        "Secret postgres-client tls.key",
		contract.EndpointCAFile("provider-a"): "Secret rpc ca.crt",
		contract.EndpointCAFile("provider-b"): "ConfigMap authorities ca.crt",
	}
	rotation := map[string]string{
		contract.DatabaseCAFile:           "ConfigMap authorities postgres.crt",
		contract.EndpointCAFile("public"): "ConfigMap authorities rpc.crt",
	}
	swap := map[string]string{
		contract.DatabaseCAFile:                 "ConfigMap authorities postgres.crt",
		contract.EndpointCAFile("public"):       "ConfigMap authorities rpc.crt",
		contract.RouterCAFile:                   "ConfigMap authorities router.crt",
		contract.FallbackRouterCAFile("second"): "Secret router-two ca.crt",
		contract.FallbackRouterCAFile("open"):   "ConfigMap authorities router.crt",
	}
	pods := templates(t)
	for name, want := range map[string]map[string]string{
		"minimal": {}, "full": full, "swap": swap,
		build.JobName("trading", 3, build.StepFund): rotation, build.JobName("trading", 3, build.StepDrain): rotation, build.JobName("trading", 3, build.StepSweep): rotation,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod, ok := pods[name]
			if !ok {
				t.Fatal("no pod has this name")
			}
			if diff := cmp.Diff(want, mountedCertificates(pod)); diff != "" {
				t.Errorf("mounted files (-want +got):\n%s", diff)
			}
		})
	}
}

// A path in a list that is not mounted would be noticed only in a cluster.
func TestListsNameTheFilesOfAuthorities(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"minimal": nil,
		"full":    {contract.EndpointCAFile("provider-a"), contract.EndpointCAFile("provider-b")},
		"swap":    {contract.FallbackRouterCAFile("open"), contract.FallbackRouterCAFile("second"), contract.EndpointCAFile("public")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := into[corev1.ConfigMap](t, single(t, build.Objects(fixtures(t)[name]), "ConfigMap")).Data
			var named []string
			for _, list := range []string{contract.EndpointsFile, contract.FallbackRoutersFile} {
				for _, match := range regexp.MustCompile(`caFile: (\S+)`).FindAllStringSubmatch(data[path.Base(list)], -1) {
					named = append(named, match[1])
				}
			}
			slices.Sort(named)
			if diff := cmp.Diff(want, named); diff != "" {
				t.Errorf("files in the lists (-want +got):\n%s", diff)
			}
		})
	}
}

// Relays read the files again, so a new certificate needs no new pods. Another reference does.
func TestAnotherReferenceToCertificatesReplacesThePods(t *testing.T) {
	t.Parallel()
	pods := func(change func(*v1alpha1.RelayPoolSpec)) string {
		in := fixtures(t)["swap"]
		change(&in.Pool.Spec)
		content, err := json.Marshal(into[appsv1.Deployment](t, single(t, build.Objects(in), "Deployment")).Spec.Template)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	same := pods(func(*v1alpha1.RelayPoolSpec) {})
	for name, change := range map[string]func(*v1alpha1.RelayPoolSpec){
		"the database's authorities":     func(s *v1alpha1.RelayPoolSpec) { s.Database.CAFrom.ConfigMapRef.Key += "x" },
		"no authorities of the database": func(s *v1alpha1.RelayPoolSpec) { s.Database.CAFrom = nil },
		"a client certificate": func(s *v1alpha1.RelayPoolSpec) {
			s.Database.ClientCertificateSecretRef = &v1alpha1.SecretReference{Name: "x"}
		},
		"an endpoint's authorities":          func(s *v1alpha1.RelayPoolSpec) { s.Solana.Endpoints[0].CAFrom.ConfigMapRef.Name += "x" },
		"no authorities of an endpoint":      func(s *v1alpha1.RelayPoolSpec) { s.Solana.Endpoints[0].CAFrom = nil },
		"the preferred router's authorities": func(s *v1alpha1.RelayPoolSpec) { s.Swap.Router.CAFrom.ConfigMapRef.Key += "x" },
		"a fallback router's authorities":    func(s *v1alpha1.RelayPoolSpec) { s.Swap.FallbackRouters[0].CAFrom.SecretRef.Key += "x" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if pods(change) == same {
				t.Error("the pod template is the same, want another")
			}
		})
	}
}
