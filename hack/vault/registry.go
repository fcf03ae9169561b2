package main

import (
	"maps"
	"slices"

	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
)

type factories = map[string]logical.Factory

// registry lists what is built in. Vault asks it before it mounts something.
type registry map[consts.PluginType]factories

func (r registry) Contains(name string, of consts.PluginType) bool { return r[of][name] != nil }

func (r registry) Get(name string, of consts.PluginType) (func() (any, error), bool) {
	return func() (any, error) { return r[of][name], nil }, r.Contains(name, of)
}

func (r registry) Keys(of consts.PluginType) []string { return slices.Collect(maps.Keys(r[of])) }

func (r registry) DeprecationStatus(name string, of consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, r.Contains(name, of)
}

func (r registry) IsBuiltinEntPlugin(string, consts.PluginType) bool { return false }
