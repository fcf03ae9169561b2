package main

import (
	"fmt"
	"io"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

// writeTable writes a line for each RelayPool.
func writeTable(w io.Writer, pools []v1alpha1.RelayPool, namespaces bool, now time.Time) {
	lines := []branch{leaf("NAMESPACE", "NAME", "READY", "REASON", "PODS", "BACKLOG", "PAYERS", "ROTATION", "AGE")}
	for i := range pools {
		p := &pools[i]
		ready, reason := "Unknown", "-"
		if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); c != nil {
			ready, reason = string(c.Status), c.Reason
		}
		lines = append(lines, leaf(
			p.Namespace, p.Name, ready, reason,
			fmt.Sprintf("%d/%d", p.Status.ReadyReplicas, p.Status.DesiredReplicas), figure(p.Status.Backlog),
			strconv.Itoa(countActive(p.Status.FeePayers)), rotationInShort(p.Status.Rotation), since(p.CreationTimestamp.Time, now),
		))
	}
	if !namespaces {
		for i := range lines {
			lines[i].cells = lines[i].cells[1:]
		}
	}
	widths := columnWidths(lines)
	for i := range lines {
		fmt.Fprintln(w, aligned(lines[i].cells, widths))
	}
}

func countActive(payers []v1alpha1.FeePayerStatus) (n int) {
	for i := range payers {
		if payers[i].State == v1alpha1.PayerActive {
			n++
		}
	}
	return n
}

func rotationInShort(r *v1alpha1.RotationStatus) string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%d:%s", r.Revision, r.Step)
}

// figure writes a number of the status that may be unknown.
func figure(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}

// since writes how long ago something was, as kubectl does.
func since(then, now time.Time) string {
	if then.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(then))
}
