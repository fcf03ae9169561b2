package build_test

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/relay/contract"
)

// A file of the list of signers that is not mounted would be noticed only in a cluster.
func TestFilesOfSignersAreMounted(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"minimal": nil,
		"signers": {contract.SignerJWTFile("vault")},
		"full": {
			contract.SignerCredentialsFile("aws"), contract.SignerCredentialsFile("gcp"),
			contract.SignerCAFile("vault-login"), contract.SignerJWTFile("vault-login"),
			contract.SignerCAFile("vault-secret"), contract.SignerTokenFile("vault-secret"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := build.Objects(fixtures(t)[name])
			list := into[corev1.ConfigMap](t, single(t, objects, "ConfigMap")).Data[path.Base(contract.SignersFile)]
			named := slices.Sorted(slices.Values(regexp.MustCompile(contract.Root+`/\S+`).FindAllString(list, -1)))
			if diff := cmp.Diff(want, named); diff != "" {
				t.Errorf("files in the list (-want +got):\n%s", diff)
			}
			mounted := map[string]bool{}
			for _, source := range relayFiles(into[appsv1.Deployment](t, single(t, objects, "Deployment")).Spec.Template.Spec).Sources {
				for _, item := range items(source) {
					if strings.HasPrefix(item.Path, "signers/") {
						mounted[contract.Root+"/"+item.Path] = true
					}
				}
			}
			if diff := cmp.Diff(want, slices.Sorted(maps.Keys(mounted))); diff != "" {
				t.Errorf("mounted files (-want +got):\n%s", diff)
			}
		})
	}
}

// With a token for another audience, nobody can call the API server.
func TestTokensOfServiceAccountsAreForVaultOnly(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"signers": "vault", "full": "https://vault.example"} {
		var audiences []string
		for _, source := range relayFiles(into[appsv1.Deployment](t, single(t, build.Objects(fixtures(t)[name]), "Deployment")).Spec.Template.Spec).Sources {
			if token := source.ServiceAccountToken; token != nil {
				audiences = append(audiences, token.Audience)
				if seconds := ptr.Deref(token.ExpirationSeconds, 0); seconds != 3600 {
					t.Errorf("%s: the token is valid for %d s, want 3600 s", name, seconds)
				}
			}
		}
		if diff := cmp.Diff([]string{want}, audiences); diff != "" {
			t.Errorf("%s: audiences (-want +got):\n%s", name, diff)
		}
	}
}
