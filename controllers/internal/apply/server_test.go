package apply_test

import (
	"testing"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
)

func TestMain(m *testing.M) {
	// Caches complain while their CRDs or their servers go, which tests want.
	log.SetLogger(logr.Discard())
	apiservertest.Main(m)
}
