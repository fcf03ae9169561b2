package stage

import (
	"bytes"
	"errors"
	"io"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/relaypool/relaypool/hack/e2e/release"
)

func filled() *Stage {
	return &Stage{password: "abc123", o: Options{
		Namespace: "team-a", Ring: 4000,
		Images: &release.Images{Postgres: "relaypool/postgres:dev", Chain: "relaypool/localnet:dev", Gate: "relaypool/gate:dev"},
	}}
}

func TestThePodsAreUnderTheRestrictedStandard(t *testing.T) {
	t.Parallel()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	pods := 0
	for _, manifest := range [][]byte{postgresManifest, chainManifest, clientsManifest} {
		text := filled().fill(manifest)
		if bytes.Contains(text, []byte("_IMAGE")) || bytes.Contains(text, []byte("RING")) {
			t.Errorf("a place in a manifest was not filled:\n%s", text)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
		for {
			var pod corev1.Pod
			if err := decoder.Decode(&pod); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if pod.Kind != "Pod" {
				continue
			}
			pods++
			restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
			for _, result := range evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
				if !result.Allowed {
					t.Errorf("pod %s: %s: %s", pod.Name, result.ForbiddenReason, result.ForbiddenDetail)
				}
			}
		}
	}
	if pods != 3 {
		t.Errorf("%d pods were found, want 3", pods)
	}
}

func TestAddressesAreThoseOfTheNamespace(t *testing.T) {
	t.Parallel()
	s := filled()
	for got, want := range map[string]string{
		s.RPCURL():         "http://chain.team-a.svc:8899",
		s.RouterURL():      "http://chain.team-a.svc:8897",
		s.FleetURL("demo"): "http://demo.team-a.svc:8080",
		s.AdminURL():       "http://127.0.0.1:8898",
	} {
		if got != want {
			t.Errorf("address %s, want %s", got, want)
		}
	}
	parsed, err := url.Parse(s.databaseURL("demo", "postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if password, _ := parsed.User.Password(); password != "abc123" || parsed.Path != "/demo" || !strings.HasPrefix(parsed.Host, "postgres.team-a.svc") {
		t.Error("the database's URL lacks its password, its name or its host")
	}
}
