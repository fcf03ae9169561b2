package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	runtimeclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/settings"
	"github.com/relaypool/relaypool/relay/commandline"
)

// checkInterval is the time between two attempts of a check.
const checkInterval = time.Second

type checkCmd struct {
	settings.Cluster `embed:""`

	Namespaces        []string      `env:"RELAYPOOL_NAMESPACES" placeholder:"NAMESPACE" help:"Namespaces whose RelayPools the operator manages. None means all."`
	LeaderElect       bool          `default:"true" env:"RELAYPOOL_LEADER_ELECT" help:"Check the Lease too."`
	OperatorNamespace string        `default:"relaypool-system" env:"RELAYPOOL_OPERATOR_NAMESPACE" placeholder:"NAMESPACE" help:"Namespace that the operator is installed in."`
	LeaseName         string        `default:"relaypool-operator" env:"RELAYPOOL_LEASE_NAME" placeholder:"NAME" help:"Name of the Lease."`
	Timeout           time.Duration `default:"1m" placeholder:"DURATION" help:"How long to wait for the operator."`
}

// Run checks an installed operator through the API server, until everything is as it should be
// or the time is up.
func (c *checkCmd) Run(env *environment) error {
	if len(env.malformed) > 0 {
		return commandline.Problems(env.malformed)
	}
	config, err := c.Cluster.Load()
	if err != nil {
		return commandline.Problems{err}
	}
	cluster, err := checkClient(config)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(env, c.Timeout)
	defer cancel()
	first := ""
	err = retry(ctx, func() error {
		if err := c.checkRelayPools(ctx, cluster); err != nil || !c.LeaderElect {
			return err
		}
		return c.checkLease(ctx, cluster, &first)
	})
	switch {
	case err != nil:
		return err
	case c.LeaderElect:
		fmt.Fprintln(env.out, "the operator works")
	default: // it leaves no trace that its own rights would show
		fmt.Fprintln(env.out, "RelayPools are served and may be listed; without a Lease, nothing says whether the operator runs")
	}
	return nil
}

func checkClient(config *rest.Config) (runtimeclient.Client, error) {
	known := runtime.NewScheme()
	if err := errors.Join(coordinationv1.AddToScheme(known), v1alpha1.AddToScheme(known)); err != nil {
		return nil, fmt.Errorf("make the scheme: %w", err)
	}
	cluster, err := runtimeclient.New(config, runtimeclient.Options{Scheme: known})
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return cluster, nil
}

// retry repeats a check until it succeeds. When ctx ends, retry returns the check's last error
// that the end itself did not cause.
func retry(ctx context.Context, check func() error) error {
	var last error
	for {
		err := check()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return last
		case <-time.After(checkInterval):
		}
	}
}

// checkRelayPools returns an error unless the cluster serves RelayPools, and the operator may
// list them where it manages them.
func (c *checkCmd) checkRelayPools(ctx context.Context, cluster runtimeclient.Client) error {
	namespaces := c.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		err := cluster.List(ctx, &v1alpha1.RelayPoolList{}, runtimeclient.InNamespace(namespace), runtimeclient.Limit(1))
		switch {
		case meta.IsNoMatchError(err):
			return errors.New("the cluster lacks the CustomResourceDefinition of RelayPool: install it with kubectl apply --server-side -f config/crd, or with the chart")
		case err != nil:
			return fmt.Errorf("list RelayPools in namespace %q: %w", namespace, err)
		}
	}
	return nil
}

// checkLease returns an error unless an operator has renewed its Lease since the first call. The
// comparison with that call makes no assumption about the clocks of the two processes.
func (c *checkCmd) checkLease(ctx context.Context, cluster runtimeclient.Client, first *string) error {
	lease := &coordinationv1.Lease{}
	if err := cluster.Get(ctx, runtimeclient.ObjectKey{Namespace: c.OperatorNamespace, Name: c.LeaseName}, lease); err != nil {
		return fmt.Errorf("get the Lease %s/%s, which an operator that runs holds: %w", c.OperatorNamespace, c.LeaseName, err)
	}
	holder := lease.Spec.HolderIdentity
	if holder == nil || *holder == "" || lease.Spec.RenewTime == nil {
		return fmt.Errorf("no operator holds the Lease %s/%s: look at its pods", c.OperatorNamespace, c.LeaseName)
	}
	if *first == "" {
		*first = lease.ResourceVersion
	}
	if lease.ResourceVersion == *first {
		return fmt.Errorf("%s holds the Lease %s/%s, and does not renew it: look at its pods", *holder, c.OperatorNamespace, c.LeaseName)
	}
	return nil
}
