package v1alpha1_test

import (
	"os"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// kubebuilder, and tools for projects of its layout, read PROJECT.
func TestProjectFileNamesTheResource(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../PROJECT")
	if err != nil {
		t.Fatal(err)
	}
	type api struct {
		CRDVersion string `json:"crdVersion"`
		Namespaced bool   `json:"namespaced"`
	}
	type resource struct {
		API        api    `json:"api"`
		Controller bool   `json:"controller"`
		Domain     string `json:"domain"`
		Group      string `json:"group"`
		Kind       string `json:"kind"`
		Path       string `json:"path"`
		Version    string `json:"version"`
	}
	var project struct {
		Domain    string     `json:"domain"`
		Layout    []string   `json:"layout"`
		Name      string     `json:"projectName"`
		Repo      string     `json:"repo"`
		Resources []resource `json:"resources"`
		Version   string     `json:"version"`
	}
	if err := yaml.UnmarshalStrict(text, &project); err != nil {
		t.Fatal(err)
	}
	if len(project.Resources) != 1 {
		t.Fatalf("PROJECT has %d resources, expected 1", len(project.Resources))
	}
	got := project.Resources[0]
	want := resource{
		API: api{CRDVersion: "v1", Namespaced: true}, Controller: true,
		Domain: project.Domain, Group: got.Group, Kind: v1alpha1.Kind, Version: v1alpha1.SchemeGroupVersion.Version,
		Path: reflect.TypeFor[v1alpha1.RelayPool]().PkgPath(),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the resource in PROJECT (-want +got):\n%s", diff)
	}
	if group := got.Group + "." + got.Domain; group != v1alpha1.Group {
		t.Errorf("PROJECT has the group %s, want %s as in the package", group, v1alpha1.Group)
	}
	if want := project.Repo + "/api/v1alpha1"; want != got.Path {
		t.Errorf("the resource's path is %s, expected %s", got.Path, want)
	}
}
