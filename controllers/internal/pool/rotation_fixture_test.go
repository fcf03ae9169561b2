package pool_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/rpc"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/keys"
	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
	"github.com/relaypool/relaypool/hack/apiserver/apiservertest"
	"github.com/relaypool/relaypool/hack/postgres"
)

// rotationSuite is what all rotations share: the relay's program, a database server with a
// template database, and a chain with its pool.
type rotationSuite struct {
	relay    string
	postgres *postgres.Server
	copying  sync.Mutex // held while the template database is copied
	stand    *pooltest.Stand
}

func newRotationSuite(t *testing.T) *rotationSuite {
	t.Helper()
	relay := pooltest.BuildRelay(t)
	w := &rotationSuite{relay: relay, postgres: pooltest.Postgres(t, relay), stand: pooltest.NewStand(t, apiservertest.Config(t))}
	if err := w.stand.Chain.Initialize(); err != nil {
		t.Fatal(err)
	}
	return w
}

// rotation is a fleet with generated keys, and a rotation of the keys. It has its own
// namespace and database.
type rotation struct {
	*pooltest.Stand
	database *pgxpool.Pool
	jobs     *pooltest.Processes
	recorder *rotationRecorder
	// funded is the sum of lamports sent to the payers.
	funded uint64
}

// poolName is the name of the only RelayPool in the namespace of a rotation.
const poolName = "demo"

// newRotation makes a namespace in which Jobs run as processes of the relay, and pods take
// a second to end.
func (w *rotationSuite) newRotation(t *testing.T) *rotation {
	t.Helper()
	r := &rotation{Stand: w.stand.SecondNamespace(t)}
	url := w.newDatabase(t, r.Namespace)
	r.UseDatabase(t, url)
	var err error
	if r.database, err = pgxpool.New(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.database.Close)
	r.jobs = r.Processes(t, w.relay)
	pooltest.StartKubelet(t, r.Config, r.Namespace, pooltest.KubeletOptions{Job: r.jobs.Run, Linger: time.Second})
	r.recorder = startRecorder(t, r)
	return r
}

// newDatabase makes a database with the relay's schema from the template, and returns its
// URL.
func (w *rotationSuite) newDatabase(t *testing.T, name string) string {
	t.Helper()
	w.copying.Lock()
	defer w.copying.Unlock()
	conn, err := pgx.Connect(t.Context(), w.postgres.URL("template1"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // nothing is under way
	statement := fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s", pgx.Identifier{name}.Sanitize(), pooltest.MigratedDatabase)
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
	return w.postgres.URL(name)
}

// startOperator runs an operator until it is stopped.
func (r *rotation) startOperator(t *testing.T) *pooltest.Operator {
	t.Helper()
	return pooltest.StartOperator(t, r.Config, pooltest.OperatorOptions{Namespaces: []string{r.Namespace}})
}

// createPool makes the RelayPool with count keys of the first revision, and sends that many
// lamports to each.
func (r *rotation) createPool(t *testing.T, count int32, lamports uint64) {
	t.Helper()
	r.Create(t, r.Pool(poolName, func(p *v1alpha1.RelayPool) { p.Spec.FeePayers.Generate.Count = count }))
	pooltest.Eventually(t, "the status shows the keys", func() error {
		if got := len(r.Status(t, poolName).FeePayers); got != int(count) {
			return fmt.Errorf("the status shows %d", got)
		}
		return nil
	})
	if lamports == 0 {
		r.Await(t, poolName, v1alpha1.ConditionFeePayersFunded, "False/Underfunded")
		r.Await(t, poolName, v1alpha1.ConditionAvailable, "True/Available")
		return
	}
	r.Fund(t, poolName, lamports)
	r.funded = uint64(count) * lamports
	r.Await(t, poolName, v1alpha1.ConditionReady, "True/Ready")
}

// addresses returns the addresses of the keys of a revision.
func (r *rotation) addresses(t *testing.T, revision int32) (out []solana.PublicKey) {
	t.Helper()
	for _, secret := range r.secrets(t) {
		if secret.Labels[keys.LabelRevision] == fmt.Sprint(revision) {
			out = append(out, solana.MustPublicKeyFromBase58(secret.Annotations[keys.AnnotationAddress]))
		}
	}
	return out
}

// secrets returns the keys' Secrets.
func (r *rotation) secrets(t *testing.T) (out []corev1.Secret) {
	t.Helper()
	var list corev1.SecretList
	if err := r.Client.List(t.Context(), &list, client.InNamespace(r.Namespace), client.MatchingLabels{keys.LabelPool: poolName}); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// requestRotation requests the next revision, with count keys. Before that, it stores for
// each old key a submission with an unknown outcome. failSubmissions ends these submissions
// some time after Drain has started to wait for them.
func (r *rotation) requestRotation(t *testing.T, revision, count int32) {
	t.Helper()
	var old [][]byte
	for _, address := range r.addresses(t, revision-1) {
		r.storeSubmission(t, address)
		old = append(old, address.Bytes())
	}
	go r.failSubmissions(t.Context(), build.JobName(poolName, revision, build.StepDrain), old)
	pooltest.Change(t, r.Stand, poolName, &v1alpha1.RelayPool{}, func(p *v1alpha1.RelayPool) {
		p.Spec.FeePayers.Rotation = &v1alpha1.Rotation{Revision: revision}
		p.Spec.FeePayers.Generate.Count = count
	})
}

// storeSubmission stores a submission in the database as a relay would. The payer has
// signed its transaction, which may still land.
func (r *rotation) storeSubmission(t *testing.T, payer solana.PublicKey) {
	t.Helper()
	random := make([]byte, 64)
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	const statement = `
WITH s AS (
	INSERT INTO submissions (id, pool, kind, state, content_hash, due_at) VALUES (gen_random_uuid(), $2, 'transfer', 'processing', $2, now()) RETURNING id
)
INSERT INTO attempts (signature, submission_id, epoch, raw, fee_payer, blockhash, blockhash_slot, last_valid_block_height, cost)
	SELECT $1, id, 1, $1, $3, $2, 1, 151, 5000 FROM s`
	if _, err := r.database.Exec(t.Context(), statement, random, random[:32], payer.Bytes()); err != nil {
		t.Fatal(err)
	}
}

// drainSlots is how many slots failSubmissions lets a Job wait. The Job polls once a
// second, which is every ten slots.
const drainSlots = 25

// failSubmissions marks the payers' submissions as failed, after the Job has waited for
// drainSlots slots.
func (r *rotation) failSubmissions(ctx context.Context, job string, payers [][]byte) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for since := uint64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		slot, err := rpc.New(r.RPC).GetSlot(ctx, rpc.CommitmentProcessed)
		switch {
		case err != nil: // the chain may be unreachable
		case !r.jobs.Running(job):
			since = 0
		case since == 0:
			since = slot
		case slot >= since+drainSlots:
			const statement = `
UPDATE submissions SET state = 'failed', error_code = 'root_not_found', due_at = NULL, completed_at = now()
	WHERE id IN (SELECT submission_id FROM attempts WHERE fee_payer = ANY ($1))`
			if _, err := r.database.Exec(ctx, statement, payers); err != nil && ctx.Err() == nil {
				r.recorder.addViolation("end submissions: %v", err)
			}
			return
		}
	}
}

// awaitStep waits until the status has shown a step. It waits for each earlier step separately,
// because each may take as long as Eventually waits.
func (r *rotation) awaitStep(t *testing.T, revision int32, step v1alpha1.RotationStep) {
	t.Helper()
	for _, before := range steps() {
		pooltest.Eventually(t, fmt.Sprintf("the rotation to %d is at %s", revision, before), func() error {
			if r.recorder.hasReached(revision, before) {
				return nil
			}
			last := r.Status(t, poolName).Rotation
			if last == nil {
				return errors.New("the rotation has not begun")
			}
			return fmt.Errorf("revision %d is at %s: %s", last.Revision, last.Step, last.Message)
		})
		if before == step {
			return
		}
	}
}

// steps returns the steps of a rotation, in order.
func steps() []v1alpha1.RotationStep {
	return []v1alpha1.RotationStep{
		v1alpha1.RotationGenerate, v1alpha1.RotationFund, v1alpha1.RotationCutOver, v1alpha1.RotationDrain,
		v1alpha1.RotationSweep, v1alpha1.RotationRetire, v1alpha1.RotationDone,
	}
}

func (r *rotation) balance(t *testing.T, address solana.PublicKey) uint64 {
	t.Helper()
	got, err := rpc.New(r.RPC).GetBalance(t.Context(), address, rpc.CommitmentConfirmed)
	if err != nil {
		t.Fatal(err)
	}
	return got.Value
}

// fees returns the fees of the Jobs' transactions, in lamports.
func (r *rotation) fees(t *testing.T) (sum uint64) {
	t.Helper()
	const query = "SELECT COALESCE(sum(fee), 0)::bigint FROM sweeps WHERE state IN ('landed', 'failed')"
	if err := r.database.QueryRow(t.Context(), query).Scan(&sum); err != nil {
		t.Fatal(err)
	}
	return sum
}

// checkDone waits for the end of a rotation and checks it. The revision's keys are in use
// and have all lamports except the fees. The other keys are retired and empty. No invariant
// was violated.
func (r *rotation) checkDone(t *testing.T, revision, count int32) {
	t.Helper()
	r.awaitStep(t, revision, v1alpha1.RotationDone)
	r.Await(t, poolName, v1alpha1.ConditionReady, "True/Ready")
	want, got := map[string]string{}, map[string]string{}
	var inUse uint64
	for _, secret := range r.secrets(t) {
		got[secret.Name] = secret.Labels[keys.LabelState]
		want[secret.Name] = "retired"
		balance := r.balance(t, solana.MustPublicKeyFromBase58(secret.Annotations[keys.AnnotationAddress]))
		if secret.Labels[keys.LabelRevision] == fmt.Sprint(revision) {
			inUse += balance
			continue
		}
		if balance != 0 {
			t.Errorf("the retired key in %s has %d lamports: want 0", secret.Name, balance)
		}
	}
	for i := range count {
		want[keys.SecretName(poolName, revision, i)] = "active"
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("states of the keys (-want +got):\n%s", diff)
	}
	if fees := r.fees(t); inUse != r.funded-fees || fees == 0 {
		t.Errorf("the keys in use have %d lamports: want %d, the funding minus %d of fees", inUse, r.funded-fees, fees)
	}
	if status := r.Status(t, poolName); len(status.FeePayers) != len(got) {
		t.Errorf("status shows %d payers: want %d", len(status.FeePayers), len(got))
	}
	for _, violation := range r.recorder.allViolations() {
		t.Error(violation)
	}
}

// notes returns the notes of the events with a reason.
func (r *rotation) notes(t *testing.T, reason string) (out []string) {
	t.Helper()
	var list eventsv1.EventList
	if err := r.Client.List(t.Context(), &list, client.InNamespace(r.Namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if e := &list.Items[i]; e.Reason == reason && e.Regarding.Kind == v1alpha1.Kind {
			out = append(out, e.Note)
		}
	}
	return out
}

// awaitNote waits for an event with a text in its note.
func (r *rotation) awaitNote(t *testing.T, reason, text string) {
	t.Helper()
	pooltest.Eventually(t, fmt.Sprintf("an event %s says %q", reason, text), func() error {
		notes := r.notes(t, reason)
		for _, n := range notes {
			if strings.Contains(n, text) {
				return nil
			}
		}
		return fmt.Errorf("the notes are %q", notes)
	})
}
