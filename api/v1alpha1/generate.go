package v1alpha1

//go:generate go tool -modfile=../../hack/codegen/go.mod controller-gen object applyconfiguration crd paths=. output:crd:dir=../../config/crd
//go:generate go tool -modfile=../../hack/codegen/go.mod crd-ref-docs --log-level=ERROR --source-path=. --config=../../hack/codegen/reference/config.yaml --templates-dir=../../hack/codegen/reference/templates --renderer=markdown --output-path=../../docs/api.md
