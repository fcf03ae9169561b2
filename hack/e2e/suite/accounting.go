package suite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/hack/drill/account"
	"github.com/relaypool/relaypool/hack/e2e/books"
	"github.com/relaypool/relaypool/hack/e2e/cluster"
	"github.com/relaypool/relaypool/hack/e2e/report"
	"github.com/relaypool/relaypool/hack/e2e/stage"
)

const (
	// mostFaults bounds what is told of one claim.
	mostFaults = 5
	// leastFinal outcomes are enough for an accounting to mean something.
	leastFinal = 30
)

// accounting ends the load and holds every claim of the drill's accountant
// against what clients were told, the database and the chain.
func (s *suite) accounting(ctx context.Context, r *report.Scenario) error {
	if err := s.startTraffic(ctx, calmRate); err != nil {
		return err
	}
	// Without a swap and a withdrawal there would be nothing to hold claims against.
	if err := s.some(ctx); err != nil {
		return err
	}
	progress := s.traffic.finish(cluster.Minutes(6))
	r.Saw("%s", words(progress))
	records := s.traffic.load.Journal().Records()
	keys, _, err := s.fleet.payers(ctx)
	if err != nil {
		return err
	}
	book := books.Fleet{
		Stage: s.stage, Name: fleetName, Database: fleetName, Payers: keys, Vault: s.vault,
		Records: records, Others: s.others, Logs: s.fleets.Folder(), Pages: s.pages,
	}
	if err := book.AwaitQuiet(ctx); err != nil {
		return err
	}
	r.Saw("every outcome is final")
	if err := s.allMetrics(ctx, s.fleet); err != nil {
		return err
	}
	book.LedgerFault = s.reconcile(ctx)
	e, results, err := book.Close(ctx)
	if err != nil {
		return err
	}
	for i := range results {
		c := &results[i]
		mark := "holds "
		if !c.Passed() {
			mark = "FAILED"
		}
		r.Saw("%s  %-28s %s (%d examined)", mark, c.Name, c.Claim, c.Examined)
	}
	if err := errors.Join(verdict(results), s.servedAll(records), complete(s.fleets.Lost())); err != nil {
		return err
	}
	r.Sum("%d submissions, %d transactions on the chain, %d payers: %d claims hold", len(e.Submissions), len(e.Transactions), len(e.Payers), len(results))
	return nil
}

// some waits until clients have told of enough, which they did long before when
// every scenario was run.
func (s *suite) some(ctx context.Context) error {
	return cluster.Await(ctx, "clients have had some outcomes", cluster.Minutes(5), func(context.Context) (string, error) {
		if p := s.traffic.load.Journal().Progress(); p.Finalized < leastFinal || p.Refunded == 0 {
			return words(p), nil
		}
		return "", nil
	})
}

// verdict makes an error of the claims that do not hold.
func verdict(results []account.Result) error {
	var errs []error
	for i := range results {
		c := &results[i]
		if c.Passed() {
			continue
		}
		faults := c.Faults
		if c.Vacuous {
			faults = append(faults, "there was nothing to examine")
		}
		if len(faults) > mostFaults {
			faults = append(faults[:mostFaults:mostFaults], fmt.Sprintf("and %d more", len(faults)-mostFaults))
		}
		errs = append(errs, fmt.Errorf("%s does not hold: %s", c.Name, strings.Join(faults, "; ")))
	}
	return errors.Join(errs...)
}

// reconcile has the relay's own command bring the ledger up to the chain, in a
// pod as an operator of it would. It gives what the command says against it.
func (s *suite) reconcile(ctx context.Context) string {
	yes, no, user := true, false, int64(65532)
	_, err := s.Cluster.RunToEnd(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "ledger", Namespace: namespace},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: &user, RunAsGroup: &user, FSGroup: &user,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "ledger", Image: s.Images.Relay, ImagePullPolicy: corev1.PullIfNotPresent,
				Args: []string{"ledger", "--database-url-file=/etc/database/" + stage.URLKey, "--rpc-url=" + s.stage.RPCURL()},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "database", MountPath: "/etc/database", ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{{Name: "database", VolumeSource: corev1.VolumeSource{
				Secret: &corev1.SecretVolumeSource{SecretName: fleetName + "-database"},
			}}},
		},
	})
	if err != nil {
		return err.Error()
	}
	return ""
}
