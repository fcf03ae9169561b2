// Package rbac is where role.yaml is written: what the operator may do, from the
// markers beside its reconciler.
package rbac

//go:generate go tool -modfile=../../hack/tools/controller-gen/go.mod controller-gen rbac:roleName=relaypool-operator paths=../../controllers/internal/pool output:rbac:dir=.
