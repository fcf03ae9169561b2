package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/hack/wallet/simulator"
)

const (
	// operatorNamespace and releaseName are the names in the chart's documentation.
	operatorNamespace, releaseName = "relaypool-system", "relaypool"
	// namespace has the fleets and the stage. nodeNamespace has the pods that are allowed to
	// kill a node's processes.
	namespace, nodeNamespace = "relaypool-e2e", "relaypool-e2e-node"
	// secondNamespace has the second operator and its fleet.
	secondNamespace = "relaypool-e2e-second"
	// fleetName is the name of the RelayPool that most scenarios use.
	fleetName = "demo"
	// folder receives logs and, after a failure, the cluster's objects.
	folder = "bin/e2e"
	// pollInterval is the time between two polls.
	pollInterval = 500 * time.Millisecond
)

// suite is the state that the scenarios share.
type suite struct {
	// ctx ends with the run, or when it is interrupted.
	ctx context.Context
	// kube reads and writes objects, uncached. clientset is for logs, evictions and watches,
	// which only a typed client has. proxy reaches pods through the API server.
	kube      client.Client
	clientset kubernetes.Interface
	proxy     podProxy

	// from is the folder of an earlier release to install first; empty for none.
	kubeconfig, loadImage, helm, from string
	seed                              uint64
	images                            images
	verifyingKey                      []byte
	simulator                         *simulator.Simulator

	stage *stage
	fleet *fleet
	// chart and values are the installed chart and its values.
	chart  string
	values map[string]any
	// installed is the time at which the chart's installation began. quiet is the time at
	// which the backlog that grew the fleet was worked off, or zero without such a backlog.
	installed, quiet  time.Time
	traffic           *traffic
	fleets, operators *podWatch
	sizes             *sizeWatch
	stopWatch         context.CancelFunc
	scenario          string
	began             time.Time
	figures           []string
	// others are requests that did not come from the traffic. pages are the metrics of pods,
	// some of which are gone, by a name: they must not contain any content of a request.
	others []load.Record
	pages  map[string][]byte
	// victims are the containers that this suite killed: their names by their IDs.
	victims map[string]string
	// lockedOut is the pod whose relays end at once, because the suite locked their database user.
	lockedOut string
	// services are the services to check again, of the scenarios that have ended.
	services []service
	// vault is the market's initial balance, in lamports.
	vault uint64
}

// scenario is a part of the suite; the needed ones always run.
type scenario struct {
	name, claim string
	needed      bool
	run         func(*suite, *testing.T)
}

func scenarios() []scenario {
	return []scenario{
		{"install", "the chart installs on a cluster without relaypool", true, (*suite).install},
		{"hold", "a RelayPool waits for its pool and says so, and is ready once the pool is initialised", true, (*suite).hold},
		{"security", "pod security is in force, and network policies are applied", false, (*suite).security},
		{"clients", "a wallet deposits, withdraws, transfers and swaps through the Service, to the lamport", false, (*suite).clients},
		{"scale-up", "a backlog grows the fleet from its minimum to its maximum", false, (*suite).scaleUp},
		{"upgrade", "helm upgrade rolls the fleet to the next image under load", false, (*suite).upgrade},
		{"eviction", "an evicted pod hands over and is replaced, and the disruption budget refuses a second one", false, (*suite).eviction},
		{"kill-pod", "a relay that is killed is started again, and its work is taken over", false, (*suite).killPod},
		{"kill-operator", "when the leading operator is killed, another one leads", false, (*suite).killOperator},
		{"secret", "a changed Secret rolls the pods", false, (*suite).secret},
		{"rotation", "fee payers are rotated under load, and the lamports left on the old ones are swept", false, (*suite).rotation},
		{"dry", "no pods are added while an empty fee payer holds the queue, and AutoscalingActive says so", false, (*suite).dry},
		{"narrow", "no pods are added while a used-up RPC plan holds the queue, and AutoscalingActive says so", false, (*suite).narrow},
		{"exposed", "a fleet with Vault's key and a database of a private authority serves clients outside of the cluster through an ingress controller, by TLS", false, (*suite).exposed},
		{"monitors", "Prometheus scrapes every pod by its monitors, and every panel's query and every alert's expression can be evaluated", false, (*suite).monitors},
		{"scale-down", "without a backlog the fleet shrinks to its minimum, pod by pod", false, (*suite).scaleDown},
		{"accounting", "nothing was lost or doubled: clients, database and chain agree to the lamport", true, (*suite).accounting},
		{"uninstall", "an uninstall leaves keys, RelayPools and running fleets, and a new installation manages them again", false, (*suite).uninstall},
		{"clusters", "when a cluster is lost, the relays of another cluster with the same database take its work over", false, (*suite).clusters},
		{"restored", "a fleet whose database was restored to an earlier moment ends everything as the chain shows, and reports what its rows lack", false, (*suite).restored},
		{"keda", "KEDA grows a fleet by its backlog", false, (*suite).keda},
		{"ends", "every relay and operator that ended did so in order after a stop signal, or was killed by this suite", true, (*suite).ends},
	}
}

// names lists the scenarios.
func names() string {
	var all []string
	for _, s := range scenarios() {
		all = append(all, s.name)
	}
	return strings.Join(all, ", ")
}

// choose returns a filter for the scenarios that a list names, in addition to the needed ones;
// an empty list selects all.
func choose(list string) (func(scenario) bool, error) {
	if list == "" {
		return func(scenario) bool { return true }, nil
	}
	wanted := strings.Split(list, ",")
	for _, name := range wanted {
		if !slices.ContainsFunc(scenarios(), func(s scenario) bool { return s.name == name }) {
			return nil, fmt.Errorf("there is no scenario %q: expected some of %s", name, names())
		}
	}
	return func(s scenario) bool { return s.needed || slices.Contains(wanted, s.name) }, nil
}

// run runs a scenario. After a failure it stores the state of the cluster.
func (s *suite) run(t *testing.T, sc scenario) {
	s.scenario, s.began = sc.name, time.Now()
	t.Log(sc.claim)
	s.keepPages()
	defer func() {
		if t.Failed() {
			s.diagnose(t)
		}
	}()
	sc.run(s, t)
	ok(t, s.ctx.Err())
}

// ok ends the test with an error.
func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// log prints an observation, with the seconds since the scenario began.
func (s *suite) log(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Logf("%6.1f s  %s", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// figure stores a measurement for the end of the report.
func (s *suite) figure(name, format string, args ...any) {
	s.figures = append(s.figures, fmt.Sprintf("%-70s %s", name, fmt.Sprintf(format, args...)))
}

// await polls until probe returns no error, and fails with the last error at the end of the
// time: API servers stall, and a missing object may still appear.
func (s *suite) await(t testing.TB, what string, within time.Duration, probe func(context.Context) error) {
	t.Helper()
	ok(t, await(s.ctx, what, within, probe))
}

func await(ctx context.Context, what string, within time.Duration, probe func(context.Context) error) error {
	last := errors.New("there was no probe")
	err := wait.PollUntilContextTimeout(ctx, pollInterval, within, true, func(ctx context.Context) (bool, error) {
		err := probe(ctx)
		if err != nil && ctx.Err() == nil { // the error of an interrupted probe says less than the previous error
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait %s until %s: %w: %w", within, what, err, last)
	}
	return nil
}

// checkNever polls for a time, and fails when probe returns a violation.
func checkNever(ctx context.Context, what string, during time.Duration, probe func(context.Context) (violation string, err error)) error {
	last := errors.New("there was no probe")
	checked := false
	err := wait.PollUntilContextTimeout(ctx, pollInterval, during, true, func(ctx context.Context) (bool, error) {
		violation, err := probe(ctx)
		if violation != "" {
			return false, errors.New(violation)
		}
		if last = err; err == nil {
			checked = true
		}
		return false, nil
	})
	switch {
	case !wait.Interrupted(err):
		return fmt.Errorf("%s: %w", what, err)
	case ctx.Err() != nil:
		return ctx.Err()
	case !checked:
		return fmt.Errorf("%s: could not be checked for %s: %w", what, during, last)
	}
	return nil
}
