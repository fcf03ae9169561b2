package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of everything in this package.
const Group = "relaypool.dev"

// Kind is the resource's kind.
const Kind = "RelayPool"

// SchemeGroupVersion is the group and version of this package, under the name
// that generated code expects.
var SchemeGroupVersion = schema.GroupVersion{Group: Group, Version: "v1alpha1"}

// AddToScheme makes the scheme know RelayPool and RelayPoolList.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(SchemeGroupVersion, &RelayPool{}, &RelayPoolList{})
	metav1.AddToGroupVersion(s, SchemeGroupVersion)
	return nil
}
