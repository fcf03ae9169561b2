// Package rbac generates role.yaml, the operator's permissions, from the markers
// in its reconciler's package.
package rbac

//go:generate go tool -modfile=../../hack/tools/controller-gen/go.mod controller-gen rbac:roleName=relaypool-operator paths=../../controllers/internal/pool output:rbac:dir=.
