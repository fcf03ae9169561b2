package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/commandline"
)

type statusCmd struct {
	Name          string `arg:"" optional:"" help:"Name of the RelayPool. Empty lists all of the namespace."`
	AllNamespaces bool   `short:"A" help:"List the RelayPools of all namespaces."`
	Output        string `short:"o" enum:"text,json,yaml" default:"text" placeholder:"FORMAT" help:"text, or json or yaml for the RelayPool itself."`
}

// Run shows one RelayPool or a list.
func (c *statusCmd) Run(env *environment) error {
	if c.Name != "" && c.AllNamespaces {
		return fmt.Errorf("%w: --all-namespaces lists RelayPools: leave out the name, or name its namespace with -n", commandline.ErrUsage)
	}
	cluster, err := env.connect()
	if err != nil {
		return err
	}
	if c.Name == "" {
		return c.list(env, cluster)
	}
	pool, err := cluster.relayPool(env, c.Name)
	if err != nil {
		return err
	}
	if c.Output != "text" {
		pool.ManagedFields = nil
		return writeObject(env.out, c.Output, pool)
	}
	fleet := fleetState{}
	if fleet.pods, fleet.podsError = cluster.relayPods(env, c.Name); fleet.podsError == nil {
		fleet.backlog, fleet.backlogError = cluster.readBacklog(env, fleet.pods)
	}
	writeTree(env.out, pool, &fleet, env.now())
	return nil
}

func (c *statusCmd) list(env *environment, cluster *connection) error {
	var pools v1alpha1.RelayPoolList
	namespace := cluster.namespace
	if c.AllNamespaces {
		namespace = ""
	}
	if err := cluster.List(env, &pools, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("list RelayPools: %w", err)
	}
	if c.Output != "text" {
		pools.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.Kind + "List"))
		for i := range pools.Items {
			pools.Items[i].SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.Kind))
			pools.Items[i].ManagedFields = nil
		}
		return writeObject(env.out, c.Output, &pools)
	}
	if len(pools.Items) == 0 {
		fmt.Fprintf(env.err, "no RelayPools in %s\n", cmp.Or(namespace, "any namespace"))
		return nil
	}
	writeTable(env.out, pools.Items, c.AllNamespaces, env.now())
	return nil
}

// writeObject writes an object as JSON or YAML.
func writeObject(w io.Writer, format string, object any) error {
	var content []byte
	var err error
	if format == "json" {
		content, err = json.MarshalIndent(object, "", "  ")
		content = append(content, '\n')
	} else {
		content, err = yaml.Marshal(object)
	}
	if err != nil {
		return fmt.Errorf("write the object as %s: %w", format, err)
	}
	_, err = w.Write(content)
	return err
}
