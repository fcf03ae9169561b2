package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/config/crd"
)

// maxDocument is the maximum size of a document in a file. It is the same as the API server's
// limit on a request.
const maxDocument = 3 << 20

// manifestReader validates RelayPools as an API server does, but without an API server. It
// refuses unknown fields, sets defaults and checks all rules of the CRD.
type manifestReader struct {
	structural *schema.Structural
	shape      validation.SchemaValidator
	rules      *cel.Validator
}

// newManifestReader makes a reader with the CRD that is built into the program.
func newManifestReader() (*manifestReader, error) {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(crd.RelayPool(), &definition); err != nil {
		return nil, fmt.Errorf("read the resource's definition: %w", err)
	}
	i := slices.IndexFunc(definition.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == v1alpha1.SchemeGroupVersion.Version && v.Schema != nil
	})
	if i < 0 {
		return nil, fmt.Errorf("the resource's definition has no schema for version %s", v1alpha1.SchemeGroupVersion.Version)
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(definition.Spec.Versions[i].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		return nil, fmt.Errorf("convert the resource's schema: %w", err)
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		return nil, fmt.Errorf("build the resource's structural schema: %w", err)
	}
	shape, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return nil, fmt.Errorf("build the resource's validator: %w", err)
	}
	return &manifestReader{structural, shape, cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// read returns the RelayPools of a file of YAML or JSON documents, with defaults set, and how
// many documents of other kinds it skipped. A RelayPool without a namespace gets the given one.
// The error lists every fault of every RelayPool, by field.
func (r *manifestReader) read(ctx context.Context, in io.Reader, namespace string) (pools []*v1alpha1.RelayPool, others int, err error) {
	documents := utilyaml.NewYAMLReader(bufio.NewReader(in))
	var faults []error
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, others, fmt.Errorf("read document %d: %w", n, err)
		}
		object, err := decodeDocument(document)
		if err != nil {
			return nil, others, fmt.Errorf("document %d: %w", n, err)
		}
		if object == nil { // nothing but comments
			continue
		}
		content := unstructured.Unstructured{Object: object}
		if content.GroupVersionKind() != v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.Kind) {
			others++
			continue
		}
		if content.GetNamespace() == "" {
			content.SetNamespace(namespace)
		}
		pool, err := r.validate(ctx, &content)
		if err != nil {
			faults = append(faults, fmt.Errorf("RelayPool %s would be refused:\n  %w", content.GetName(), err))
			continue
		}
		pools = append(pools, pool)
	}
	return pools, others, errors.Join(faults...)
}

// decodeDocument reads one document of YAML or JSON, and keeps integers as integers. It returns nil
// for an empty document.
func decodeDocument(document []byte) (map[string]any, error) {
	if len(document) > maxDocument {
		return nil, fmt.Errorf("expected at most %d bytes, received %d", maxDocument, len(document))
	}
	content, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, fmt.Errorf("expected YAML or JSON: %w", err)
	}
	var object map[string]any
	if err := json.Unmarshal(content, &object); err != nil {
		return nil, errors.New("expected an object with apiVersion and kind, received something else")
	}
	return object, nil
}

// validate makes the API server's checks of a new object, in the API server's order.
func (r *manifestReader) validate(ctx context.Context, content *unstructured.Unstructured) (*v1alpha1.RelayPool, error) {
	object := content.Object
	delete(object, "status") // the API server drops a client's status
	if unknown := pruning.PruneWithOptions(object, r.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}); len(unknown) > 0 {
		slices.Sort(unknown)
		return nil, fmt.Errorf("unknown fields: %s; kubectl explain relaypool.spec lists the known ones", strings.Join(unknown, ", "))
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, r.structural)
	defaulting.Default(object, r.structural)
	faults := apivalidation.ValidateObjectMetaAccessor(content, true, apivalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	faults = append(faults, validation.ValidateCustomResource(nil, object, r.shape)...)
	faults = append(faults, listtype.ValidateListSetsAndMaps(nil, r.structural, object)...)
	if len(faults) == 0 { // CEL rules may assume a valid shape
		violations, _ := r.rules.Validate(ctx, nil, r.structural, object, nil, celconfig.RuntimeCELCostBudget)
		faults = violations
	}
	if len(faults) > 0 {
		lines := make([]string, len(faults))
		for i, fault := range faults {
			lines[i] = fault.Error()
		}
		slices.Sort(lines)
		return nil, errors.New(strings.Join(slices.Compact(lines), "\n  "))
	}
	pool := &v1alpha1.RelayPool{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object, pool, true); err != nil {
		return nil, err
	}
	return pool, nil
}
