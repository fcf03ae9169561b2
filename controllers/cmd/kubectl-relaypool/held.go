package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

type heldCmd struct {
	Name string `arg:"" help:"Name of the RelayPool."`
}

// Run lists the reasons for which submissions are held.
func (c *heldCmd) Run(env *environment) error {
	cluster, err := env.connect()
	if err != nil {
		return err
	}
	pool, err := cluster.relayPool(env, c.Name)
	if err != nil {
		return err
	}
	pods, err := cluster.relayPods(env, c.Name)
	if err != nil {
		return err
	}
	b, err := cluster.readBacklog(env, pods)
	if err != nil {
		if active := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionAutoscalingActive); active != nil && active.Reason == v1alpha1.ReasonLimited {
			fmt.Fprintf(env.err, "the operator says: %s\n", active.Message)
		}
		return fmt.Errorf("read the backlog of RelayPool %s: %w", c.Name, err)
	}
	reasons := slices.DeleteFunc(slices.Sorted(maps.Keys(b.Held)), func(reason string) bool { return b.Held[reason] <= 0 })
	if len(reasons) == 0 {
		fmt.Fprintf(env.out, "no submissions are held\n")
		return nil
	}
	slices.SortStableFunc(reasons, func(x, y string) int { return cmp.Compare(b.Held[y], b.Held[x]) })
	lines := []branch{leaf("REASON", "HELD", "WHAT TO DO")}
	for _, reason := range reasons {
		lines = append(lines, leaf(reason, strconv.FormatInt(b.Held[reason], 10), strings.ReplaceAll(adviceFor(reason), "NAME", c.Name)))
	}
	widths := columnWidths(lines)
	for i := range lines {
		fmt.Fprintln(env.out, aligned(lines[i].cells, widths))
	}
	return nil
}
