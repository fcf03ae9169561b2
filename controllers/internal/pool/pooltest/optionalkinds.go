package pooltest

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/relaypool/relaypool/hack/apiserver"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

// InstallOptional adds an optional kind to an API server, by a definition that accepts any
// content. No other test may use the server, because the new kind changes what the operator
// makes for every RelayPool there.
func InstallOptional(t testing.TB, server *apiserver.Server, kind schema.GroupVersionKind, plural string) {
	t.Helper()
	if err := server.Install(apiservertest.ForeignCRD(kind, plural)); err != nil {
		t.Fatalf("install %s: %v", kind.Kind, err)
	}
}

// Object returns an object of a kind, without content.
func Object(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}
