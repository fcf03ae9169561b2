package v1alpha1

//go:generate go tool -modfile=../../hack/tools/controller-gen/go.mod controller-gen object applyconfiguration crd paths=. output:crd:dir=../../config/crd
