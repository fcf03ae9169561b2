package main

import (
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/pool"
)

// printOffline prints the objects that the operator makes for each RelayPool, without a cluster.
func (c *planCmd) printOffline(env *environment, pools []*v1alpha1.RelayPool) error {
	for _, relayPool := range pools {
		objects, err := render(relayPool, c.settings())
		if err != nil {
			return fmt.Errorf("RelayPool %s would not be accepted: %w", relayPool.Name, err)
		}
		for _, object := range objects {
			if err := writeYAML(env.out, object.Kind.Kind, object.Name, object.Config); err != nil {
				return err
			}
		}
		printRemarks(env.err, relayPool)
	}
	return nil
}

// render returns the objects of a RelayPool for a cluster that has every optional kind.
func render(p *v1alpha1.RelayPool, s pool.Settings) ([]build.Object, error) {
	return pool.Render(p, pool.RenderOptions{
		Settings:     s,
		Capabilities: build.Capabilities{PodMonitor: true, PrometheusRule: true, ScaledObject: true, HTTPRoute: true},
	})
}

// generatedSecrets returns the names of the Secrets in which the operator would put generated
// keys.
func generatedSecrets(p *v1alpha1.RelayPool) (names []string) {
	if p.Spec.FeePayers.Generate == nil {
		return nil
	}
	var revision int32
	if rotation := p.Spec.FeePayers.Rotation; rotation != nil {
		revision = rotation.Revision
	}
	for i := range p.Spec.FeePayers.Generate.Count {
		names = append(names, keys.SecretName(p.Name, revision, i))
	}
	return names
}

// writeYAML writes an object as one YAML document.
func writeYAML(w io.Writer, kind, name string, object any) error {
	content, err := yaml.Marshal(object)
	if err != nil {
		return fmt.Errorf("write %s %s: %w", kind, name, err)
	}
	_, err = fmt.Fprintf(w, "---\n%s", content)
	return err
}

// printRemarks prints facts that the objects do not show.
func printRemarks(w io.Writer, p *v1alpha1.RelayPool) {
	name := p.Namespace + "/" + p.Name
	if p.Spec.Paused {
		fmt.Fprintf(w, "%s: spec.paused is set, so none of this is applied until it is removed\n", name)
	}
	if p.Spec.Pool.Gate == v1alpha1.GateHold {
		fmt.Fprintf(w, "%s: until the pool is initialised on the chain, the fleet is held at 0 pods and without an autoscaler\n", name)
	}
	if secrets := generatedSecrets(p); len(secrets) > 0 {
		fmt.Fprintf(w, "%s: a key is made in each of the Secrets %s that does not exist yet\n", name, strings.Join(secrets, ", "))
	}
}
