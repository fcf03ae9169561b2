// Package suite is the end-to-end test: what a user does with the chart and a
// RelayPool on a real cluster, and what goes wrong there, each a scenario.
package suite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/relaypool/relaypool/hack/e2e/cluster"
	"github.com/relaypool/relaypool/hack/e2e/release"
	"github.com/relaypool/relaypool/hack/e2e/report"
	"github.com/relaypool/relaypool/hack/e2e/stage"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/wallet"
	"github.com/relaypool/relaypool/hack/wallet/simulator"
)

const (
	// OperatorNamespace is the chart's release's, as its documentation has it.
	OperatorNamespace = "relaypool-system"
	// Release is the chart's.
	Release = "relaypool"
	// namespace is that of the fleets and what they stand on; nodeNamespace that of
	// the pods that may kill a node's processes.
	namespace, nodeNamespace = "relaypool-e2e", "relaypool-e2e-node"
	// fleetName is the RelayPool's that most scenarios are about.
	fleetName = "demo"
	// ring is long, so that the queue may be, too.
	ring = 4000
)

// Options of a run. All are required but Only and Keep.
type Options struct {
	Cluster *cluster.Cluster
	Helm    *release.Helm
	Images  *release.Images
	// VerifyingKey is the development key, as snarkjs' verification_key.json, and
	// Simulator proves under it; Prover makes real proofs.
	VerifyingKey []byte
	Simulator    *simulator.Simulator
	Prover       *wallet.Prover
	// Seed decides what clients do.
	Seed uint64
	// Folder takes logs and, after a failure, what the cluster had.
	Folder string
	Report *report.Report
	// Only names scenarios to run, besides those that the others need; empty for all.
	Only []string
	// Keep leaves everything on the cluster after a failure.
	Keep bool
	Now  func() time.Time
}

// suite is what is known as a run goes on.
type suite struct {
	Options
	stage *stage.Stage
	fleet *fleet
	// installed is when the chart's installation began.
	installed time.Time
	values    map[string]any
	traffic   *traffic
	fleets    *cluster.Watcher // of the fleets' namespace
	operators *cluster.Watcher
	sizes     *cluster.Sizes // of the fleet
	// others are what clients sent beside the traffic, and pages the metrics of pods
	// that may be gone, by a name: nothing of any request may be in them.
	others []load.Record
	pages  map[string][]byte
	// victims are the containers that this suite killed: their names by their ids.
	victims map[string]string
	// services are how clients were to be served, of scenarios that are over.
	services []service
	// calm is when the backlog that grew the fleet was worked off; zero without one.
	calm time.Time
	// vault is what the market held at first.
	vault uint64
}

// scenario is one part; the needed ones are run whatever is asked for.
type scenario struct {
	name, claim string
	needed      bool
	run         func(*suite, context.Context, *report.Scenario) error
}

func scenarios() []scenario {
	return []scenario{
		{"install", "the chart installs on a cluster that has nothing of it", true, (*suite).install},
		{"hold", "a RelayPool waits for its pool and says so, and is ready once the pool is initialised", true, (*suite).hold},
		{"security", "pod security is in force, network policies are applied", false, (*suite).security},
		{"clients", "a wallet deposits, withdraws, transfers and swaps through the Service, to the lamport", false, (*suite).clients},
		{"scale-up", "a backlog grows the fleet from its minimum to its maximum", false, (*suite).scaleUp},
		{"upgrade", "helm upgrade rolls the fleet to the next image under load", false, (*suite).upgrade},
		{"eviction", "an evicted pod hands over and is replaced, and the disruption budget refuses a second one", false, (*suite).eviction},
		{"kill-pod", "a relay that is killed is started again, and its work is taken over", false, (*suite).killPod},
		{"kill-operator", "a leading operator that is killed is followed by another", false, (*suite).killOperator},
		{"secret", "a changed Secret rolls the pods", false, (*suite).secret},
		{"rotation", "fee payers are rotated under load, and what is left on the old ones is swept", false, (*suite).rotation},
		{"dry", "no pods are added while an empty fee payer holds the queue, and AutoscalingActive says so", false, (*suite).dry},
		{"narrow", "no pods are added while a used-up RPC plan holds the queue, and AutoscalingActive says so", false, (*suite).narrow},
		{"scale-down", "without a backlog the fleet shrinks to its minimum, pod by pod", false, (*suite).scaleDown},
		{"accounting", "nothing was lost or doubled: clients, database and chain agree to the lamport", true, (*suite).accounting},
		{"uninstall", "an uninstall leaves keys, RelayPools and running fleets, and a new installation takes them up", false, (*suite).uninstall},
		{"ends", "every relay and operator that ended was told to and did so in order, or was killed by this suite", true, (*suite).ends},
	}
}

// Names are the scenarios'.
func Names() (names []string) {
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	return names
}

// Check refuses names that no scenario has.
func Check(only []string) error {
	for _, name := range only {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("there is no scenario %q: expected some of %s", name, strings.Join(Names(), ", "))
		}
	}
	return nil
}

// Run carries out the scenarios in their order and ends with the first that
// fails. Its error is of the suite's own setting up and clearing away; what
// scenarios found is in the report.
func Run(ctx context.Context, o Options) (err error) {
	if o.Cluster == nil || o.Helm == nil || o.Images == nil || len(o.VerifyingKey) == 0 || o.Simulator == nil || o.Prover == nil || o.Folder == "" || o.Report == nil || o.Now == nil {
		return errors.New("run the suite: every option is required but Only and Keep")
	}
	s := &suite{Options: o, victims: make(map[string]string), pages: make(map[string][]byte)}
	if err := s.clear(ctx); err != nil {
		return fmt.Errorf("clear away what an earlier run left: %w", err)
	}
	for _, folder := range []string{"logs", "logs-operator", "failure"} {
		if err := os.RemoveAll(filepath.Join(o.Folder, folder)); err != nil {
			return fmt.Errorf("clear the folder of logs: %w", err)
		}
	}
	watching, stop := context.WithCancel(ctx)
	passed := s.all(ctx, watching)
	if s.traffic != nil {
		s.traffic.abandon()
	}
	late := context.WithoutCancel(ctx)
	if !passed {
		err = s.diagnose(late)
	}
	stop()
	for _, w := range []*cluster.Watcher{s.fleets, s.operators} {
		if w != nil {
			w.Close()
		}
	}
	if s.sizes != nil {
		s.sizes.Close()
	}
	if !passed && o.Keep {
		o.Report.Say("left everything on the cluster: namespaces %s and %s", namespace, OperatorNamespace)
		return err
	}
	o.Report.Say("clearing away")
	return errors.Join(err, s.clear(late))
}

// all runs the scenarios; watching is the context of what goes on beside them.
func (s *suite) all(ctx, watching context.Context) (passed bool) {
	for _, w := range []struct {
		namespace, folder string
		into              **cluster.Watcher
	}{{namespace, "logs", &s.fleets}, {OperatorNamespace, "logs-operator", &s.operators}} {
		var err error
		if *w.into, err = s.Cluster.Watch(watching, w.namespace, filepath.Join(s.Folder, w.folder)); err != nil {
			s.Report.Say("%v", err)
			return false
		}
	}
	s.sizes = s.Cluster.FollowSizes(watching, namespace, fleetName, s.Now)
	for _, part := range scenarios() {
		if len(s.Only) > 0 && !part.needed && !slices.Contains(s.Only, part.name) {
			s.Report.Skip(part.name, part.claim)
			continue
		}
		s.keepPages(ctx)
		running := s.Report.Begin(part.name, part.claim)
		err := part.run(s, ctx, running)
		if err == nil {
			err = ctx.Err()
		}
		running.End(err)
		if err != nil {
			return false
		}
	}
	return true
}

// diagnose keeps what the cluster has.
func (s *suite) diagnose(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, cluster.Minutes(2))
	defer cancel()
	folder := filepath.Join(s.Folder, "failure")
	s.Report.Say("keeping objects and events in %s, logs in %s", folder, s.Folder)
	return errors.Join(s.Cluster.Diagnose(ctx, namespace, folder), s.Cluster.Diagnose(ctx, OperatorNamespace, folder))
}
