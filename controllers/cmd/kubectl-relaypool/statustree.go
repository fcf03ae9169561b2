package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/relay/onchain"
)

// fleetState is what the pods of a RelayPool show. An error says why a part is unknown.
type fleetState struct {
	pods         []corev1.Pod
	podsError    error
	backlog      *backlog
	backlogError error
}

// writeTree writes everything about one RelayPool.
func writeTree(w io.Writer, pool *v1alpha1.RelayPool, fleet *fleetState, now time.Time) {
	title := fmt.Sprintf("RelayPool %s/%s", pool.Namespace, pool.Name)
	if ready := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
		title += fmt.Sprintf("  Ready=%s (%s)", ready.Status, ready.Reason)
	}
	if pool.Spec.Paused {
		title += "  paused"
	}
	if pool.Status.ObservedGeneration < pool.Generation {
		title += "  the operator has not processed the newest spec yet"
	}
	fmt.Fprintln(w, title)
	writeBelow(w, "", []branch{
		section("Conditions", conditionLines(pool.Status.Conditions, now)),
		section("Fee payers", payerLines(pool.Status.FeePayers)),
		section("Endpoints of "+pool.Spec.Solana.Cluster, endpointLines(pool.Spec.Solana.Endpoints)),
		section("Backlog", backlogLines(pool, fleet)),
		section("Rotation", rotationLines(pool, now)),
		section(fmt.Sprintf("Pods (%d of %d ready)", pool.Status.ReadyReplicas, pool.Status.DesiredReplicas), podLines(fleet)),
	})
}

func section(title string, lines []branch) branch {
	if len(lines) == 0 {
		lines = []branch{leaf("none")}
	}
	return branch{[]string{title}, lines}
}

func conditionLines(conditions []metav1.Condition, now time.Time) (lines []branch) {
	for i := range conditions {
		c := &conditions[i]
		lines = append(lines, leaf(c.Type, string(c.Status), c.Reason, since(c.LastTransitionTime.Time, now), c.Message))
	}
	return lines
}

func payerLines(payers []v1alpha1.FeePayerStatus) (lines []branch) {
	for i := range payers {
		p := &payers[i]
		balance, inSOL := "balance unknown", ""
		if p.BalanceLamports != nil {
			lamports := orDefault(p.BalanceLamports, 0)
			balance, inSOL = strconv.FormatUint(lamports, 10)+" lamports", onchain.SOL(lamports)+" SOL"
		}
		source := "Secret " + p.SecretName
		if p.SignerName != "" {
			source = "signer " + p.SignerName
		}
		cells := []string{p.Address, string(p.State), balance, inSOL, source}
		if p.RunwayHours != nil {
			cells = append(cells, fmt.Sprintf("lasts %d h", *p.RunwayHours))
		}
		lines = append(lines, leaf(cells...))
	}
	return lines
}

// endpointLines shows of a URL only scheme and host, because its path may be a credential.
func endpointLines(endpoints []v1alpha1.Endpoint) (lines []branch) {
	for i := range endpoints {
		e := &endpoints[i]
		source := "-"
		if e.URLSecretRef != nil {
			source = fmt.Sprintf("URL in Secret %s, key %s", e.URLSecretRef.Name, e.URLSecretRef.Key)
		} else if u, err := url.Parse(e.URL); err == nil && u.Host != "" {
			source = u.Scheme + "://" + u.Host
		}
		roles := make([]string, len(e.Roles))
		for i, role := range e.Roles {
			roles[i] = string(role)
		}
		lines = append(lines, leaf(e.Name, cmp.Or(strings.Join(roles, ","), "all roles"), source))
	}
	return lines
}

func backlogLines(pool *v1alpha1.RelayPool, fleet *fleetState) (lines []branch) {
	b := fleet.backlog
	if b == nil {
		if pool.Status.Backlog != nil {
			lines = append(lines, leaf(fmt.Sprintf("%d wait for a worker, rounded, as the operator last saw it", *pool.Status.Backlog)))
		}
		return append(lines, leaf("not read from a pod, so held reasons are unknown: "+cmp.Or(fleet.podsError, fleet.backlogError).Error()))
	}
	due := fmt.Sprintf("%d wait for a worker", *b.Due)
	if *b.Due > 0 {
		due += fmt.Sprintf(", the first for %d s", b.OldestDueSeconds)
	}
	lines = append(lines, leaf(due), leaf(fmt.Sprintf("%d pending, %d processing", b.Pending, b.Processing)))
	for _, reason := range slices.Sorted(maps.Keys(b.Held)) {
		lines = append(lines, leaf(fmt.Sprintf("%d held by %s", b.Held[reason], reason)))
	}
	return lines
}

func rotationLines(pool *v1alpha1.RelayPool, now time.Time) (lines []branch) {
	if r := pool.Status.Rotation; r != nil {
		step := fmt.Sprintf("revision %d: %s", r.Revision, r.Step)
		if r.Since != nil {
			step += " for " + since(r.Since.Time, now)
		}
		lines = append(lines, branch{cells: []string{step}})
		if r.Message != "" {
			lines[0].below = []branch{leaf(r.Message)}
		}
	}
	if wanted := wantedRevision(pool); pool.Status.Rotation == nil && wanted > 0 || pool.Status.Rotation != nil && pool.Status.Rotation.Revision < wanted {
		lines = append(lines, leaf(fmt.Sprintf("revision %d is wanted", wanted)))
	}
	return lines
}

func podLines(fleet *fleetState) (lines []branch) {
	if fleet.podsError != nil {
		return []branch{leaf("unknown: " + fleet.podsError.Error())}
	}
	for i := range fleet.pods {
		pod := &fleet.pods[i]
		state := string(pod.Status.Phase)
		switch {
		case pod.DeletionTimestamp != nil:
			state = "Terminating"
		case podReady(pod):
			state = "Ready"
		case pod.Status.Phase == corev1.PodRunning:
			state = "NotReady"
		}
		restarts, waiting := int32(0), ""
		for j := range pod.Status.ContainerStatuses {
			if s := &pod.Status.ContainerStatuses[j]; s.Name == build.RelayContainer {
				restarts = s.RestartCount
				if s.State.Waiting != nil {
					waiting = s.State.Waiting.Reason
				}
			}
		}
		lines = append(lines, leaf(pod.Name, state, fmt.Sprintf("%d restarts", restarts), waiting))
	}
	return lines
}
