package pool

import (
	"context"
	"errors"
	"net/url"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// If the write of a status may have been executed, its events are emitted, because no later
// pass would emit them.
func TestOutcomeUnknown(t *testing.T) {
	t.Parallel()
	pools := schema.GroupResource{Group: "relaypool.dev", Resource: "relaypools"}
	tests := map[string]struct {
		err  error
		want bool
	}{
		"the connection broke":              {&url.Error{Op: "Put", URL: "/", Err: errors.New("connection reset")}, true},
		"the pass ran out of time":          {context.DeadlineExceeded, true},
		"the server reports a timeout":      {apierrors.NewTimeoutError("no answer", 1), true},
		"the server's storage was too slow": {apierrors.NewServerTimeout(pools, "update", 1), true},
		"another client wrote earlier":      {apierrors.NewConflict(pools, "demo", errors.New("changed")), false},
		"the RelayPool is gone":             {apierrors.NewNotFound(pools, "demo"), false},
		"the write is not allowed":          {apierrors.NewForbidden(pools, "demo", errors.New("no")), false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := outcomeUnknown(tc.err); got != tc.want {
				t.Errorf("outcome unknown: %t, want %t", got, tc.want)
			}
		})
	}
}
