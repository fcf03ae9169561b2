package tenancy

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
)

func TestParseRepository(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ text, want string }{
		"a repository with its registry":       {"registry.example/relaypool/relay", "registry.example/relaypool/relay"},
		"a registry with a port":               {"registry.example:5000/relay", "registry.example:5000/relay"},
		"a repository of the default registry": {"relaypool/relay", "docker.io/relaypool/relay"},
		"a repository of Docker's library":     {"relay", "docker.io/library/relay"},
		"all of a registry":                    {"registry.example/*", "registry.example/*"},
		"all below a path":                     {"registry.example/relaypool/*", "registry.example/relaypool/*"},
		"all of an owner, default registry":    {"relaypool/*", "docker.io/relaypool/*"},
		"a tag":                                {"registry.example/relay:1", ""},
		"a digest":                             {"registry.example/relay@sha256:" + strings.Repeat("0f", 32), ""},
		"nothing":                              {"", ""},
		"a star alone":                         {"*", ""},
		"a star in the middle":                 {"registry.example/*/relay", ""},
		"a star that ends a part of a name":    {"registry.example/relay*", ""},
		"a scheme":                             {"https://registry.example/relay", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ParseRepository(tc.text)
			if got != tc.want || (err != nil) != (tc.want == "") {
				t.Errorf("%q parses to %q, error %v; want %q", tc.text, got, err, tc.want)
			}
		})
	}
}

func TestOnlyAllowedRepositoriesRun(t *testing.T) {
	t.Parallel()
	const own = "mirror.example/relay:0.1.0"
	policy := Policy{Images: []string{"registry.example/relaypool/relay", "docker.io/team/*"}}
	digest := "@sha256:" + strings.Repeat("0f", 32)
	tests := map[string]struct {
		image string
		// want is a part of the fault; empty when there is none.
		want string
	}{
		"no image":                                 {"", ""},
		"the operator's default image":             {own, ""},
		"another tag of the default image":         {"mirror.example/relay:0.0.1", "received mirror.example/relay"},
		"an allowed repository":                    {"registry.example/relaypool/relay:1", ""},
		"an allowed repository by digest":          {"registry.example/relaypool/relay" + digest, ""},
		"an allowed repository by tag and digest":  {"registry.example/relaypool/relay:1" + digest, ""},
		"a repository below an allowed path":       {"team/relay:1", ""},
		"a repository deep below an allowed path":  {"docker.io/team/fork/relay:1", ""},
		"the allowed path itself":                  {"docker.io/team:1", "received docker.io/library/team"},
		"a name that begins like an allowed one":   {"registry.example/relaypool/relay-evil:1", "received registry.example/relaypool/relay-evil"},
		"a repository below an allowed repository": {"registry.example/relaypool/relay/evil:1", "received registry.example/relaypool/relay/evil"},
		"an owner that begins like an allowed one": {"team-evil/relay:1", "received docker.io/team-evil/relay"},
		"another registry":                         {"evil.example/relaypool/relay:1", "received evil.example/relaypool/relay"},
		"an allowed name as a path elsewhere":      {"evil.example/registry.example/relaypool/relay:1", "received evil.example/registry.example/relaypool/relay"},
		"another port of the registry":             {"registry.example:5000/relaypool/relay:1", "received registry.example:5000/relaypool/relay"},
		"a path that goes up":                      {"docker.io/team/../evil/relay:1", "received a text that is not an image name"},
		"a URL":                                    {"https://evil.example", "received a text that is not an image name"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := policy.Faults(&v1alpha1.RelayPoolSpec{Image: tc.image}, own)
			switch {
			case tc.want == "" && len(got) > 0:
				t.Errorf("%s is refused: %q", tc.image, got)
			case tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)):
				t.Errorf("faults are %q, want one with %q", got, tc.want)
			case tc.want != "":
				for _, part := range []string{"spec.image: ", "registry.example/relaypool/relay, docker.io/team/*", "omit the field", "--tenant-images ($RELAYPOOL_TENANT_IMAGES)"} {
					if !strings.Contains(got[0], part) {
						t.Errorf("the fault is %q, want %q in it", got[0], part)
					}
				}
			}
			if got := (Policy{}).Faults(&v1alpha1.RelayPoolSpec{Image: tc.image}, own); len(got) > 0 {
				t.Errorf("without a list %s is refused: %q", tc.image, got)
			}
		})
	}
}

// templatesByField returns templates with one field set each, by the field's name.
func templatesByField() map[string]v1alpha1.Template {
	return map[string]v1alpha1.Template{
		"labels":                    {Labels: map[string]string{"a": "b"}},
		"annotations":               {Annotations: map[string]string{"a": "b"}},
		"serviceAccountAnnotations": {ServiceAccountAnnotations: map[string]string{"a": "b"}},
		"resources":                 {Resources: &corev1.ResourceRequirements{}},
		"nodeSelector":              {NodeSelector: map[string]string{"a": "b"}},
		"tolerations":               {Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}},
		"affinity":                  {Affinity: &corev1.Affinity{}},
		"priorityClassName":         {PriorityClassName: "system-cluster-critical"},
		"podTemplate":               {PodTemplate: &runtime.RawExtension{Raw: []byte("{}")}},
		"imagePullSecrets":          {ImagePullSecrets: []v1alpha1.SecretReference{{Name: "registry"}}},
		"logLevel":                  {LogLevel: v1alpha1.LogDebug},
	}
}

// The policy must also cover fields that are added to the template later.
func TestPolicyCoversEveryTemplateField(t *testing.T) {
	t.Parallel()
	templates := templatesByField()
	fields := reflect.TypeFor[v1alpha1.Template]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		template, ok := templates[name]
		if !ok {
			t.Errorf("template.%s is not in templatesByField: decide whether it can be withheld", name)
			continue
		}
		content, err := json.Marshal(template)
		if err != nil || !strings.Contains(string(content), `"`+name+`"`) {
			t.Errorf("template.%s is not set in %s: %v", name, content, err)
		}
		neverWithheld := name == "imagePullSecrets" || name == "logLevel"
		if neverWithheld == slices.Contains(TemplateFields(), name) {
			t.Errorf("template.%s can be withheld: %t, want %t", name, neverWithheld, !neverWithheld)
		}
	}
}

func TestWithheldFieldsAreNamed(t *testing.T) {
	t.Parallel()
	for name, template := range templatesByField() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := &v1alpha1.RelayPoolSpec{Template: template}
			if got := (Policy{}).Faults(spec, ""); len(got) > 0 {
				t.Errorf("no field is withheld, but the faults are %q", got)
			}
			others := slices.DeleteFunc(TemplateFields(), func(field string) bool { return field == name })
			if got := (Policy{Withheld: others}).Faults(spec, ""); len(got) > 0 {
				t.Errorf("only other fields are withheld, but the faults are %q", got)
			}
			got := Policy{Withheld: TemplateFields()}.Faults(spec, "")
			if !slices.Contains(TemplateFields(), name) {
				if len(got) > 0 {
					t.Errorf("a field that is never withheld has the faults %q", got)
				}
				return
			}
			if len(got) != 1 || !strings.HasPrefix(got[0], "spec.template."+name+": ") || !strings.Contains(got[0], "none of the fields") || !strings.Contains(got[0], "remove it") {
				t.Errorf("faults are %q, want one that names the field, what is allowed and what to do", got)
			}
			got = Policy{Withheld: []string{name}}.Faults(spec, "")
			if len(got) != 1 || !strings.Contains(got[0], "only the fields "+strings.Join(others, ", ")+" out of") {
				t.Errorf("faults are %q, want the fields that are allowed", got)
			}
		})
	}
}

func TestWithheldFieldsOfTheAPIAreNamed(t *testing.T) {
	t.Parallel()
	apis := map[string]v1alpha1.API{"service": {Service: &v1alpha1.Service{}}, "ingress": {Ingress: &v1alpha1.Ingress{}}, "gateway": {Gateway: &v1alpha1.Gateway{}}}
	if got, want := slices.Sorted(maps.Keys(apis)), slices.Sorted(slices.Values(APIFields())); !slices.Equal(got, want) {
		t.Fatalf("the fields are %q, tested are %q", want, got)
	}
	for name, api := range apis {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := &v1alpha1.RelayPoolSpec{API: api}
			others := slices.DeleteFunc(APIFields(), func(field string) bool { return field == name })
			for _, allowing := range []Policy{{}, {WithheldAPI: others}, {Withheld: TemplateFields()}} {
				if got := allowing.Faults(spec, ""); len(got) > 0 {
					t.Errorf("%+v allows the field, but the faults are %q", allowing, got)
				}
			}
			got := Policy{WithheldAPI: []string{name}}.Faults(spec, "")
			if len(got) != 1 || !strings.HasPrefix(got[0], "spec.api."+name+": ") || !strings.Contains(got[0], "only the fields "+strings.Join(others, ", ")+" out of") || !strings.Contains(got[0], "--tenant-api-fields") {
				t.Errorf("faults are %q, want one that names the field, what is allowed and the setting", got)
			}
		})
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	generated := func(of string) map[string]string {
		return map[string]string{build.LabelPool: of, build.LabelPayerState: "active", v1alpha1.LabelUsableBy: v1alpha1.UsableByAny}
	}
	usable := func(by string) map[string]string { return map[string]string{v1alpha1.LabelUsableBy: by} }
	strict := Policy{RequireLabel: true, Usable: []string{"pools/listed"}}
	tests := map[string]struct {
		policy        Policy
		named         NamedObject
		want          string // a part of the text; empty when the object may be used
		wantGenerated bool
	}{
		"any Secret, where no label is required":             {Policy{}, NamedObject{Name: "admin"}, "", false},
		"any Secret, where a label is required":              {strict, NamedObject{Name: "admin"}, "expected its label relaypool.dev/usable-by to be demo or any, received none", false},
		"a Secret with the label for this RelayPool":         {strict, NamedObject{Name: "db", Labels: usable("demo")}, "", false},
		"a Secret with the label for every RelayPool":        {strict, NamedObject{Name: "db", Labels: usable("any")}, "", false},
		"a Secret with the label for another RelayPool":      {strict, NamedObject{Name: "db", Labels: usable("demo-2")}, "received another value", false},
		"a Secret with an empty label":                       {strict, NamedObject{Name: "db", Labels: usable("")}, "received none", false},
		"a listed Secret":                                    {strict, NamedObject{Name: "listed"}, "", false},
		"a Secret with a listed name in another namespace":   {strict, NamedObject{Namespace: "other", Name: "listed"}, "received none", false},
		"a ConfigMap without the label":                      {strict, NamedObject{Kind: "ConfigMap", Name: "vk"}, "kubectl label configmap vk -n pools --overwrite relaypool.dev/usable-by=demo", false},
		"a ConfigMap with the label":                         {strict, NamedObject{Kind: "ConfigMap", Name: "vk", Labels: usable("demo")}, "", false},
		"another RelayPool's generated key":                  {Policy{}, NamedObject{Name: "x", Labels: generated("other"), Payer: true}, "a generated fee payer key of RelayPool other", true},
		"another RelayPool's key, although listed":           {strict, NamedObject{Name: "listed", Labels: generated("other"), Payer: true}, "a generated fee payer key of RelayPool other", true},
		"another RelayPool's key as an API key":              {Policy{}, NamedObject{Name: "x", Labels: generated("other")}, "a generated fee payer key of RelayPool other", true},
		"the RelayPool's own key as a fee payer":             {strict, NamedObject{Name: "x", Labels: map[string]string{build.LabelPool: "demo", build.LabelPayerState: "retired"}, Payer: true}, "", false},
		"the RelayPool's own key as the router's secret":     {Policy{}, NamedObject{Name: "x", Labels: generated("demo")}, "only as a fee payer's key", true},
		"a generated key without the label of its RelayPool": {Policy{}, NamedObject{Name: "x", Labels: map[string]string{build.LabelPayerState: "active"}, Payer: true}, "a generated fee payer key", true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := tc.named
			n.Pool = "demo"
			if n.Namespace == "" {
				n.Namespace = "pools"
			}
			if n.Kind == "" {
				n.Kind = "Secret"
			}
			got := tc.policy.Refuse(n)
			switch {
			case tc.want == "" && got != nil:
				t.Errorf("the object is refused: %+v; want no refusal", *got)
			case tc.want != "" && (got == nil || !strings.Contains(got.Text, tc.want) || got.Generated != tc.wantGenerated):
				t.Errorf("refusal is %+v, want %q in it, Generated %t", got, tc.want, tc.wantGenerated)
			}
		})
	}
}
