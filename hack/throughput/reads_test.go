package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// respond answers requests without a network, so that time need not pass.
type respond func(*http.Request) (status int, err error)

func (f respond) RoundTrip(q *http.Request) (*http.Response, error) {
	status, err := f(q)
	if err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	w.WriteHeader(status)
	return w.Result(), nil
}

func TestReadAllTakesTurnsAndCountsFailures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := &http.Client{Transport: respond(func(q *http.Request) (int, error) {
			time.Sleep(30 * time.Millisecond) // longer than a turn
			switch q.URL.Path {
			case "/b":
				return http.StatusNotFound, nil
			case "/c":
				return 0, errors.New("refused")
			}
			return http.StatusOK, nil
		})}
		ctx, stop := context.WithTimeout(t.Context(), 99*time.Millisecond)
		defer stop()
		got := readAll(ctx, client, "http://relay", 100, []string{"/a", "/b", "/c"})
		failed := slices.Repeat([]time.Duration{readTimeout}, 10)
		want := reads{Took: map[string][]time.Duration{"/a": slices.Repeat([]time.Duration{30 * time.Millisecond}, 10), "/b": failed, "/c": failed}, Failed: 20}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("(-got +want):\n%s", diff)
		}
	})
}
