package e2e

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const connectedSQL = `SELECT count(DISTINCT client_addr) FROM pg_stat_activity WHERE datname = current_database() AND usename = $1`

// secret changes the database's user in its Secret.
func (s *suite) secret(t *testing.T) {
	s.startTraffic(t, calmRate)
	before := s.fleet.awaitPods(t, "serves", nil)
	checkService := s.startService(t, serviceBounds{MaxSilence: maxSilence, MaxFailed: failedShare})
	const user = "successor"
	secret := &corev1.Secret{}
	ok(t, s.kube.Get(s.ctx, client.ObjectKey{Namespace: namespace, Name: fleetName + "-database"}, secret))
	secret.StringData = map[string]string{urlKey: s.makeUser(t, fleetName, user)}
	ok(t, s.kube.Update(s.ctx, secret))
	began := time.Now()
	s.log(t, "the Secret of the database names another user")
	pods := s.fleet.awaitPods(t, "was made after the change", func(pod *corev1.Pod) error {
		if slices.ContainsFunc(before, func(old corev1.Pod) bool { return old.UID == pod.UID }) {
			return errors.New("is an old one")
		}
		return nil
	})
	s.log(t, "%d pods replaced in %.1f s; the operator reads the Secret every %s", len(pods), time.Since(began).Seconds(), refsInterval)
	var connected int
	ok(t, s.stage.withDatabase(s.ctx, fleetName, func(conn *pgx.Conn) error {
		return conn.QueryRow(s.ctx, connectedSQL, user).Scan(&connected)
	}))
	if connected < len(pods) {
		t.Fatalf("%d pods are connected as the new user, expected %d", connected, len(pods))
	}
	checkService()
}
