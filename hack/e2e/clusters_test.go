package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/contract"
)

// minAfterLoss is the number of spends that have to complete before, and after the loss of a cluster.
const minAfterLoss = 20

// clusters gives one database to the fleets of two operators. Each operator reads one namespace alone, so
// that neither can see more of the other than from a cluster of its own. Then the first cluster is lost:
// its relay is killed, and its database user is locked, so that the relay that Kubernetes starts again
// stays outside.
func (s *suite) clusters(t *testing.T) {
	first, second := s.newFleet("first"), &fleet{s, "second", secondNamespace, "first"}
	s.values["clusterWide"], s.values["namespaces"] = false, []string{namespace}
	s.deploy(t, "upgrade")
	s.makeDatabase(t, first.name)
	s.makeClusterRoles(t, first.name)
	s.setDatabaseURL(t, first, s.stage.databaseURL(first.name, first.name+"-cluster"))
	pools := []*v1alpha1.RelayPool{s.createUnscaled(t, first), s.createSecond(t, second)}
	s.log(t, "two operators have a fleet each, with one database")

	clients := s.newTrafficFrom(t, s.stage.HTTP, []string{s.stage.fleetURL(first.name), fmt.Sprintf("http://%s.%s.svc:%d", second.name, second.namespace, contract.APIPort)}, calmRate, 0, s.seed+5)
	defer clients.abandon()
	s.awaitCompleted(t, clients, minAfterLoss) // then both hold submissions that have landed and are not final
	victim := s.busiest(t, first.awaitPods(t, "serves", nil))
	leases := s.watchLeases(first.name)
	defer leases.close()
	leases.restart(t, 2)
	s.lockedOut = victim.Name
	s.administer(t, `ALTER ROLE "first-cluster" NOLOGIN`, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'first-cluster'`)
	end := s.kill(t, victim, relayContainer, s.fleets)
	leases.awaitTakeover(t)
	s.figure("loss of a cluster to the takeover of its work by another one, at most", "%.1f s", time.Since(end.At).Seconds())
	before := clients.progress().Completed
	s.await(t, "the other cluster serves the clients", 3*time.Minute, func(context.Context) error {
		if clients.progress().Completed < before+minAfterLoss {
			return errors.New(clients.String())
		}
		return nil
	})
	clients.finish(5 * time.Minute)
	s.log(t, "%s", clients)
	second.accountFor(t, clients.Journal().Records(), first)
	s.administer(t, `ALTER ROLE "first-cluster" LOGIN`)
	if fault := s.ledgerFault(first.name); fault != "" {
		t.Errorf("the ledger of both clusters' payers: %s", fault)
	}
	for _, pool := range pools {
		s.deleteObject(t, pool, 2*time.Minute)
	}
	s.runHelmIn(t, secondNamespace, "uninstall")
	s.deleteNamespace(t, secondNamespace)
	s.values["clusterWide"], s.values["namespaces"] = true, []string{}
	s.deploy(t, "upgrade")
}

// makeClusterRoles makes a role for each cluster, which acts as the owner of the database.
func (s *suite) makeClusterRoles(t *testing.T, database string) {
	t.Helper()
	s.administer(t, "CREATE ROLE shared_owner", "ALTER DATABASE "+database+" OWNER TO shared_owner")
	for _, cluster := range []string{"first", "second"} {
		role := `"` + cluster + `-cluster"`
		// The password is base32 text: it needs no quoting.
		s.administer(t, "CREATE ROLE "+role+" LOGIN PASSWORD '"+s.stage.password+"'", "GRANT shared_owner TO "+role, "ALTER ROLE "+role+" SET role = shared_owner")
	}
}

// createSecond installs the second operator, and makes its fleet.
func (s *suite) createSecond(t *testing.T, f *fleet) *v1alpha1.RelayPool {
	t.Helper()
	ok(t, s.makeNamespace(f.namespace, "restricted"))
	s.deployIn(t, f.namespace, "install", map[string]any{
		"operator": s.values["operator"], "relay": s.values["relay"], "namespaces": []string{f.namespace},
		"externalMetrics": map[string]any{"enabled": false}, // a cluster has one adapter
	})
	ok(t, s.kube.Create(s.ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: verifyingKeyMap, Namespace: f.namespace},
		Data:       map[string]string{verifyingKeyName: string(s.verifyingKey)},
	}))
	ok(t, s.kube.Create(s.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: f.name + "-database", Namespace: f.namespace},
		StringData: map[string]string{urlKey: s.stage.databaseURL(f.database, f.name+"-cluster")},
	}))
	return s.createUnscaled(t, f)
}

// createUnscaled makes a fleet of one pod, funds it and waits until it is ready.
func (s *suite) createUnscaled(t *testing.T, f *fleet) *v1alpha1.RelayPool {
	t.Helper()
	pool := s.relayPool(f.name, maxReplicas, submissionsPerReplica)
	pool.Namespace = f.namespace
	pool.Spec.Replicas, pool.Spec.Autoscaling = new(int32(1)), nil
	pool.Spec.NetworkPolicy.OperationsFrom[0].NamespaceSelector = &metav1.LabelSelector{} // of the clients' pod
	ok(t, s.kube.Create(s.ctx, pool))
	f.fund(t, moreFunds)
	f.awaitCondition(t, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	return pool
}

// setDatabaseURL changes the URL in the Secret of a fleet's database.
func (s *suite) setDatabaseURL(t *testing.T, f *fleet, url string) {
	t.Helper()
	secret := &corev1.Secret{}
	ok(t, s.kube.Get(s.ctx, client.ObjectKey{Namespace: f.namespace, Name: f.name + "-database"}, secret))
	secret.StringData = map[string]string{urlKey: url}
	ok(t, s.kube.Update(s.ctx, secret))
}
