// Package release renders and installs the chart with Helm's library.
package release

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// Name and Namespace of the release in the documents' install commands.
const (
	Name      = "relaypool"
	Namespace = "relaypool-system"
)

// Load reads the chart from its folder or its package.
func Load(path string) (*chart.Chart, error) {
	c, err := loader.Load(path)
	if err != nil {
		return nil, fmt.Errorf("load the chart: %w", err)
	}
	return c, nil
}

// Options configure the rendering of a chart. The zero value is an installation of
// relaypool in relaypool-system on a cluster without other APIs.
type Options struct {
	Name, Namespace string
	// APIVersions are the cluster's APIs in addition to Kubernetes' own APIs.
	APIVersions []string
	// Upgrade renders for helm upgrade instead of helm install.
	Upgrade bool
}

// Render returns the objects that the chart renders, hooks included, without a cluster,
// and the notes.
func Render(c *chart.Chart, values map[string]any, o Options) (objects []*unstructured.Unstructured, notes string, err error) {
	install := action.NewInstall(action.NewConfiguration())
	install.DryRunStrategy = action.DryRunClient
	install.ReleaseName, install.Namespace = cmp.Or(o.Name, Name), cmp.Or(o.Namespace, Namespace)
	install.APIVersions, install.IsUpgrade = o.APIVersions, o.Upgrade
	install.KubeVersion = &common.KubeVersion{Version: "v1.36.0", Major: "1", Minor: "36"}
	rel, err := toRelease(install.Run(c, values))
	if err != nil {
		return nil, "", err
	}
	text := rel.Manifest
	for _, h := range rel.Hooks {
		text += "\n---\n" + h.Manifest
	}
	objects, err = Objects([]byte(text))
	return objects, rel.Info.Notes, err
}

// Objects reads the objects of a YAML file.
func Objects(text []byte) ([]*unstructured.Unstructured, error) {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	var out []*unstructured.Unstructured
	for {
		u := &unstructured.Unstructured{}
		switch err := decoder.Decode(&u.Object); {
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, fmt.Errorf("read objects: %w", err)
		case len(u.Object) > 0:
			out = append(out, u)
		}
	}
}
