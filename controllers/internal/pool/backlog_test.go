package pool

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

// transport sends every request to one handler.
type transport struct{ http.Handler }

func (h transport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

func TestHTTPBacklog(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status  int
		body    string
		want    Backlog
		wantErr string
	}{
		"an answer":            {status: 200, body: `{"pending_count":9,"due_count":4,"held":{"fee_payer_empty":5}}`, want: Backlog{Due: 4, Held: map[string]int64{"fee_payer_empty": 5}}},
		"a pod that starts":    {status: 503, body: `{}`, wantErr: "received 503"},
		"something else":       {status: 200, body: `<html>`, wantErr: "read the backlog"},
		"no count":             {status: 200, body: `{}`, wantErr: "due_count"},
		"a count that is none": {status: 200, body: `{"due_count":-1}`, wantErr: "due_count"},
		"an endless answer":    {status: 200, body: `{"held":"` + strings.Repeat("x", maxAnswer) + `"}`, wantErr: "read the backlog"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := ""
			reader := HTTPBacklog{Client: &http.Client{Transport: transport{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r.URL.String()
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			})}}}
			got, err := reader.Backlog(t.Context(), "fd00::1")
			if asked != "http://[fd00::1]:9090/backlog" {
				t.Errorf("asked %s: want the operations port of the pod", asked)
			}
			if (err != nil) != (tc.wantErr != "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Fatalf("error %v: want %q", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("backlog (-want +got):\n%s", diff)
			}
		})
	}
}

// answers is a BacklogReader of fixed answers by address.
type answers map[string]func(ctx context.Context) (Backlog, error)

func (a answers) Backlog(ctx context.Context, ip string) (Backlog, error) { return a[ip](ctx) }

func TestPollerAsksBesideThePasses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		due, asked := int64(3), map[string]int{}
		poller, err := NewPoller(answers{
			"10.0.0.1": func(ctx context.Context) (Backlog, error) {
				asked["10.0.0.1"]++
				<-ctx.Done()
				return Backlog{}, ctx.Err()
			},
			"10.0.0.2": func(context.Context) (Backlog, error) { asked["10.0.0.2"]++; return Backlog{Due: due}, nil },
		}, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- poller.Start(ctx) }()
		told := 0
		go func() {
			for range poller.Events() {
				told++
			}
		}()
		key, ips := types.NamespacedName{Namespace: "n", Name: "p"}, []string{"10.0.0.1", "10.0.0.2"}
		for range 10 { // minutes in which a pass is made each second
			for range 60 {
				poller.Backlog(key, ips)
				time.Sleep(time.Second)
			}
		}
		synctest.Wait()
		got := poller.Backlog(key, ips)
		if got.Due != 3 || got.At.IsZero() || told != 1 {
			t.Errorf("backlog %+v, told %d times: want 3, and told once", got, told)
		}
		if asked["10.0.0.2"] > 21 || asked["10.0.0.1"] > 21 {
			t.Errorf("asked %v in ten minutes: want every half a minute at most", asked)
		}
		due = 6
		time.Sleep(backlogInterval + backlogPatience)
		poller.Backlog(key, []string{"10.0.0.2"})
		synctest.Wait()
		if got := poller.Backlog(key, ips); got.Due != 6 || told != 2 {
			t.Errorf("backlog %d, told %d times: want 6, and told of twice as many", got.Due, told)
		}
		poller.Forget(key)
		if got := poller.Backlog(key, nil); !got.At.IsZero() {
			t.Error("a forgotten fleet has a backlog")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		close(poller.events)
	})
}

func TestPodsThatNeverAnswerAreAskedSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		poller, err := NewPoller(answers{"10.0.0.1": func(context.Context) (Backlog, error) { asked++; return Backlog{}, errors.New("no route") }}, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = poller.Start(ctx) }()
		for range 24 * 60 {
			if got := poller.Backlog(types.NamespacedName{Name: "p"}, []string{"10.0.0.1"}); !got.At.IsZero() {
				t.Fatal("nothing was answered, and the backlog is known")
			}
			time.Sleep(time.Minute)
		}
		if asked > 24*6+6 || asked < 24*5 {
			t.Errorf("asked %d times in a day: want about every ten minutes", asked)
		}
	})
}
