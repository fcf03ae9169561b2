package operatormetrics_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/controllers/internal/apply"
	"github.com/relaypool/relaypool/controllers/internal/build"
	"github.com/relaypool/relaypool/controllers/internal/operatormetrics"
	"github.com/relaypool/relaypool/relay/contract"
)

// fakeApplier is an Applier with a fixed result.
type fakeApplier struct {
	result apply.Result
	err    error
}

func (a *fakeApplier) Apply(context.Context, *v1alpha1.RelayPool, []build.Object, ...apply.Option) (apply.Result, error) {
	return a.result, a.err
}

func (*fakeApplier) Forget(types.NamespacedName) {}

func TestPassesAreCountedByOutcome(t *testing.T) {
	t.Parallel()
	inner := &fakeApplier{}
	p, err := operatormetrics.NewCountingApplier(inner)
	if err != nil {
		t.Fatal(err)
	}
	deployment := apply.Ref{Kind: build.KindDeployment, Name: "demo"}
	service := apply.Ref{Kind: build.KindService, Name: "demo"}
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "demo", errors.New("changed"))
	for _, a := range []fakeApplier{
		{},
		{},
		{result: apply.Result{Applied: []apply.Ref{deployment, service}}},
		{result: apply.Result{Repaired: []apply.Ref{deployment}, Pruned: []apply.Ref{service}}},
		{result: apply.Result{Refused: []apply.Refusal{{Ref: deployment}}, Applied: []apply.Ref{service}}},
		{result: apply.Result{Foreign: []apply.Ref{service}, Contested: []apply.Ref{deployment}}},
		{result: apply.Result{Waiting: []apply.Ref{deployment}}},
		{err: fmt.Errorf("apply: %w", conflict)},
		{err: errors.New("no answer")},
		{err: errors.Join(conflict, errors.New("no answer"))},
	} {
		*inner = a
		result, err := p.Apply(t.Context(), nil, nil)
		if result.Changed() != a.result.Changed() || !errors.Is(err, a.err) {
			t.Errorf("%+v, %v, want it passed on", result, err)
		}
	}
	compare(t, p, contract.MetricOperatorPasses,
		`{outcome="changed"} 2`, `{outcome="conflict"} 1`, `{outcome="failed"} 2`, `{outcome="held"} 3`, `{outcome="steady"} 2`)
	compare(t, p, contract.MetricOperatorObjects,
		`{event="applied",kind="Deployment"} 1`, `{event="applied",kind="Service"} 2`, `{event="contested",kind="Deployment"} 1`,
		`{event="foreign",kind="Service"} 1`, `{event="pruned",kind="Service"} 1`, `{event="refused",kind="Deployment"} 1`,
		`{event="repaired",kind="Deployment"} 1`)
}
