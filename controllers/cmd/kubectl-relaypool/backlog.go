package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/relaypool/relaypool/relay/contract"
)

// backlog is the queue of a fleet, as any of its pods reports it.
type backlog struct {
	Due              *int64           `json:"due_count"`
	OldestDueSeconds int64            `json:"oldest_due_age_seconds"`
	Pending          int64            `json:"pending_count"`
	Processing       int64            `json:"processing_count"`
	Held             map[string]int64 `json:"held"`
}

// maxAsked is how many pods are asked for the backlog until one answers.
const maxAsked = 3

// readBacklog asks ready pods, one after the other.
func (c *connection) readBacklog(ctx context.Context, pods []corev1.Pod) (*backlog, error) {
	var failed error
	asked := 0
	for i := range pods {
		if !podReady(&pods[i]) || asked == maxAsked {
			continue
		}
		asked++
		page, err := c.fromPod(ctx, pods[i].Name, contract.BacklogPath)
		if errors.Is(err, errPodSilent) {
			return nil, err
		}
		if err != nil {
			failed = err
			continue
		}
		var b backlog
		if err := json.Unmarshal(page, &b); err != nil || b.Due == nil {
			failed = fmt.Errorf("pod %s answered %s with something else than a backlog", pods[i].Name, contract.BacklogPath)
			continue
		}
		return &b, nil
	}
	if asked == 0 {
		return nil, errors.New("no pod is ready")
	}
	return nil, failed
}
