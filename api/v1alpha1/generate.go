package v1alpha1

//go:generate go tool -modfile=../../hack/tools/controller-gen/go.mod controller-gen object applyconfiguration crd paths=. output:crd:dir=../../config/crd
//go:generate go tool -modfile=../../hack/tools/crd-ref-docs/go.mod crd-ref-docs --log-level=ERROR --source-path=. --config=../../hack/tools/crd-ref-docs/reference/config.yaml --templates-dir=../../hack/tools/crd-ref-docs/reference/templates --renderer=markdown --output-path=../../docs/api.md
