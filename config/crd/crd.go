// Package crd holds the definition of the RelayPool resource, so that programs
// know its defaults and rules without a cluster.
package crd

import _ "embed"

//go:embed relaypool.dev_relaypools.yaml
var relayPool string

// RelayPool is the YAML of RelayPool's CustomResourceDefinition.
func RelayPool() []byte { return []byte(relayPool) }
