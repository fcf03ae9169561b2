package cluster_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/relaypool/relaypool/hack/e2e/cluster"
)

func TestAwaitEndsWithTheFirstContentLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, looks := time.Now(), 0
		err := cluster.Await(t.Context(), "it is there", time.Minute, func(context.Context) (string, error) {
			if looks++; looks == 2 {
				return "", errors.New("the API server stalls")
			}
			if looks < 4 {
				return "it is not", nil
			}
			return "", nil
		})
		if err != nil || looks != 4 || time.Since(began) != 3*cluster.Poll {
			t.Errorf("error %v after %d looks and %s", err, looks, time.Since(began))
		}
	})
}

func TestAwaitFailsWithTheLastComplaint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := cluster.Await(t.Context(), "it is there", time.Minute, func(context.Context) (string, error) {
			return "2 of 3 pods are ready", nil
		})
		if err == nil || !strings.Contains(err.Error(), "wait until it is there: 1m0s have passed: 2 of 3 pods are ready") {
			t.Errorf("error %v", err)
		}
	})
}

func TestHoldLooksForItsWholeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		look := func(wrong time.Duration) func(context.Context) (string, error) {
			return func(context.Context) (string, error) {
				if time.Since(began) >= wrong {
					return "there are 2 pods", nil
				}
				return "", nil
			}
		}
		if err := cluster.Hold(t.Context(), "no pod is added", time.Minute, look(time.Hour)); err != nil || time.Since(began) != time.Minute {
			t.Errorf("error %v after %s", err, time.Since(began))
		}
		began = time.Now()
		if err := cluster.Hold(t.Context(), "no pod is added", time.Minute, look(50*time.Second)); err == nil || !strings.Contains(err.Error(), "no pod is added: there are 2 pods") {
			t.Errorf("error %v", err)
		}
		if err := cluster.Hold(t.Context(), "no pod is added", time.Minute, func(context.Context) (string, error) {
			return "", errors.New("away")
		}); err == nil || !strings.Contains(err.Error(), "could not be looked at") {
			t.Errorf("nothing was seen: error %v", err)
		}
	})
}
