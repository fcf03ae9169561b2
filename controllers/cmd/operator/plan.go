package main

import (
	"fmt"
	"io"
	"os"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/manager"
	"github.com/relaypool/relaypool/controllers/internal/pool"
	"github.com/relaypool/relaypool/controllers/internal/settings"
	"github.com/relaypool/relaypool/relay/commandline"
)

type planCmd struct {
	File              string `required:"" short:"f" placeholder:"FILE" help:"Required. File of RelayPools, YAML or JSON, or - for standard input. Other kinds in it are left out."`
	Namespace         string `default:"default" short:"n" placeholder:"NAMESPACE" help:"Namespace of RelayPools that name none."`
	RelayImage        string `default:"relaypool/relay" env:"RELAYPOOL_RELAY_IMAGE" placeholder:"IMAGE" help:"Image of the relay for RelayPools without spec.image, the same as for operator run."`
	Server            bool   `help:"Compare with a cluster: print only the objects that would be created or changed there, of the kinds that it has, and report what the API server would refuse, what is missing and which objects belong to somebody else. Nothing is changed. Ends with 1 if any of it would fail."`
	OperatorNamespace string `default:"relaypool-system" env:"RELAYPOOL_OPERATOR_NAMESPACE" placeholder:"NAMESPACE" help:"Namespace that the operator is installed in, from which network policies admit it."`

	Tenants          settings.Tenants `embed:"" prefix:"tenant-"`
	settings.Cluster `embed:""`
}

// Run prints what would be applied.
func (c *planCmd) Run(env *environment) error {
	problems := append(commandline.Problems{}, env.malformed...)
	problems = append(problems, settings.CheckImage(c.RelayImage)...)
	problems = append(problems, c.Tenants.Check()...)
	if len(problems) > 0 {
		return problems
	}
	pools, err := c.read(env)
	if err != nil {
		return err
	}
	if c.Server {
		return c.preview(env, pools)
	}
	return c.printOffline(env, pools)
}

// settings returns the operator's settings that the plan assumes.
func (c *planCmd) settings() pool.Settings {
	return manager.PoolSettings(c.RelayImage, c.OperatorNamespace, c.Tenants.Policy())
}

// read returns the file's RelayPools. It validates them and sets defaults, as the API server does.
func (c *planCmd) read(env *environment) ([]*v1alpha1.RelayPool, error) {
	in := env.in
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return nil, fmt.Errorf("%w: --file: %w", commandline.ErrUsage, err)
		}
		defer func() { _ = f.Close() }() // an error would not matter, because the file is only read
		in = f
	}
	reader, err := newManifestReader()
	if err != nil {
		return nil, err
	}
	pools, others, err := reader.read(env, io.LimitReader(in, maxManifest), c.Namespace)
	if err != nil {
		return nil, err
	}
	if others > 0 {
		fmt.Fprintf(env.err, "left out %d documents that are not a RelayPool of %s\n", others, v1alpha1.SchemeGroupVersion)
	}
	if len(pools) == 0 {
		return nil, fmt.Errorf("%w: --file: expected a RelayPool of %s, found none", commandline.ErrUsage, v1alpha1.SchemeGroupVersion)
	}
	return pools, nil
}

// maxManifest bounds the size of the input. No file that a person writes is nearly as large.
const maxManifest = 64 << 20
