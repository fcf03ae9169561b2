package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/hack/drill/gather"
	"github.com/relaypool/relaypool/hack/drill/verify"
)

// minBefore is the number of spends that complete before the backup, and again after it.
const minBefore = 20

// restored gives a fleet its database as it was while submissions were under way: what has landed since
// is on the chain alone.
func (s *suite) restored(t *testing.T) {
	f := s.newFleet("restored")
	const backup, lost = "backup", "lost"
	s.makeDatabase(t, f.name)
	pool := s.createUnscaled(t, f)
	clients := s.newTraffic(t, f.name, calmRate, 0, s.seed+6)
	defer clients.abandon()
	s.awaitCompleted(t, clients, minBefore)
	open := s.backUp(t, f.name, backup)
	s.awaitCompleted(t, clients, clients.progress().Completed+minBefore)
	clients.finish(5 * time.Minute)
	f.awaitFinal(t)
	s.log(t, "%d submissions were under way at the backup; %s", open, clients)
	s.others = append(s.others, clients.Journal().Records()...)

	f.change(t, func(spec *v1alpha1.RelayPoolSpec) { spec.Replicas = new(int32(0)) })
	s.await(t, "no pod of the fleet is left", 3*time.Minute, func(ctx context.Context) error {
		list := &corev1.PodList{} // with those that are ending, which have connections
		err := s.kube.List(ctx, list, client.InNamespace(f.namespace), client.MatchingLabels{"app.kubernetes.io/instance": f.name})
		if err == nil && len(list.Items) > 0 {
			return fmt.Errorf("%d are left", len(list.Items))
		}
		return err
	})
	s.administer(t, "ALTER DATABASE "+f.name+" RENAME TO "+lost, "ALTER DATABASE "+backup+" RENAME TO "+f.name)
	f.change(t, func(spec *v1alpha1.RelayPoolSpec) { spec.Replicas = new(int32(1)) })
	f.awaitPods(t, "serves", nil)
	f.awaitCondition(t, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	f.awaitFinal(t)
	missing := s.compareRestored(t, f.name, lost)
	s.log(t, "every submission of the backup ended as in the lost database, and the tree is the same; %d of the lost database's are missing", missing)
	if fault := s.ledgerFault(f.name); !strings.Contains(fault, "to which a database was restored") {
		t.Fatalf("relay ledger does not report the payments whose rows are lost: %s", fault)
	}
	again := s.newTraffic(t, f.name, calmRate, 0, s.seed+7)
	defer again.abandon()
	s.awaitCompleted(t, again, minBefore)
	again.finish(5 * time.Minute)
	s.others = append(s.others, again.Journal().Records()...)
	s.deleteObject(t, pool, 2*time.Minute)
}

func (s *suite) awaitCompleted(t *testing.T, clients *traffic, count int) {
	t.Helper()
	s.await(t, fmt.Sprintf("%d spends are completed", count), 5*time.Minute, func(context.Context) error {
		if clients.progress().Completed < count {
			return errors.New(clients.String())
		}
		return nil
	})
}

// administer runs statements outside of the fleets' databases.
func (s *suite) administer(t *testing.T, statements ...string) {
	t.Helper()
	ok(t, s.stage.withDatabase(s.ctx, postgresUser, func(conn *pgx.Conn) error {
		for _, statement := range statements {
			if _, err := conn.Exec(s.ctx, statement); err != nil {
				return err
			}
		}
		return nil
	}))
}

// backUp copies a database that is in use, and returns how many submissions in the copy have no outcome.
// Postgres copies only a database without connections, so the fleet loses it for a moment.
func (s *suite) backUp(t *testing.T, from, to string) (working int) {
	t.Helper()
	s.await(t, "a backup has submissions that are under way", time.Minute, func(ctx context.Context) error {
		s.administer(t, "DROP DATABASE IF EXISTS "+to, "ALTER DATABASE "+from+" ALLOW_CONNECTIONS false",
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '"+from+"'",
			"CREATE DATABASE "+to+" TEMPLATE "+from, "ALTER DATABASE "+from+" ALLOW_CONNECTIONS true")
		return s.stage.withDatabase(ctx, to, func(conn *pgx.Conn) (err error) {
			if working, _, err = gather.Open(ctx, conn); err == nil && working == 0 {
				err = errors.New("it has none")
			}
			return err
		})
	})
	return working
}

// compareRestored checks that the rows and the leaves of a restored database are as in the lost one, and
// returns how many submissions it lacks.
func (s *suite) compareRestored(t *testing.T, database, lost string) (missing int) {
	t.Helper()
	was, is := s.readRows(t, lost), s.readRows(t, database)
	for id, row := range is.rows {
		if old := was.rows[id]; old.State != row.State || old.Signature != row.Signature {
			t.Errorf("submission %s is %s with the transaction %s, in the lost database %s with %s", id, row.State, row.Signature, old.State, old.Signature)
		}
	}
	if is.leaves != was.leaves {
		t.Errorf("the restored database has leaves with the hash %s, the lost one %s", is.leaves, was.leaves)
	}
	if len(is.rows) >= len(was.rows) {
		t.Fatalf("the restored database has %d submissions, the lost one %d: nothing was lost", len(is.rows), len(was.rows))
	}
	return len(was.rows) - len(is.rows)
}

// rows are a database's submissions, and a hash of its leaves.
type rows struct {
	rows   map[uuid.UUID]verify.Submission
	leaves string
}

func (s *suite) readRows(t *testing.T, database string) rows {
	t.Helper()
	e, out := &verify.Evidence{}, rows{rows: make(map[uuid.UUID]verify.Submission)}
	ok(t, s.stage.withDatabase(s.ctx, database, func(conn *pgx.Conn) error {
		return errors.Join(gather.Rows(s.ctx, conn, e), conn.QueryRow(s.ctx,
			`SELECT count(*) || ' ' || md5(string_agg(leaf_index || encode(commitment, 'hex'), ',' ORDER BY leaf_index)) FROM commitments`).Scan(&out.leaves))
	}))
	for i := range e.Submissions {
		out.rows[e.Submissions[i].ID] = e.Submissions[i]
	}
	return out
}
