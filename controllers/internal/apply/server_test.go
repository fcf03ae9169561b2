package apply_test

import (
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

func TestMain(m *testing.M) {
	// Caches log errors when a test removes a CRD or stops an API server.
	log.SetLogger(logr.Discard())
	apiservertest.Main(m)
}
