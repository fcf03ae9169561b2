package e2e

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gagliardetto/solana-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/relaypool/relaypool/hack/drill/verify"
	"github.com/relaypool/relaypool/hack/load"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// These tests of the suite itself need no cluster.

// wantError checks that an error contains a text. An empty text means no error.
func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("error %v, want one with %q", err, want)
	}
}

// The default kubeconfig of a user may be for a production cluster.
func TestClusterHasNoDefault(t *testing.T) {
	t.Parallel()
	wantError(t, requirements("", "true"), "KUBECONFIG is not set")
	wantError(t, requirements("/tmp/kubeconfig", ""), "LOAD_IMAGE is not set")
	wantError(t, requirements("/tmp/kubeconfig", "true"), "")
}

func TestChooseAcceptsOnlyKnownScenarios(t *testing.T) {
	t.Parallel()
	_, err := choose(strings.ReplaceAll(names(), " ", ""))
	wantError(t, err, "")
	_, err = choose("install,chaos")
	wantError(t, err, `no scenario "chaos"`)
	chosen, err := choose("upgrade,rotation")
	wantError(t, err, "")
	var got []string
	seen := make(map[string]bool)
	for _, s := range scenarios() {
		if seen[s.name] || s.claim == "" || s.run == nil {
			t.Errorf("scenario %q is listed twice, or lacks its claim or its function", s.name)
		}
		if seen[s.name] = true; chosen(s) {
			got = append(got, s.name)
		}
	}
	if diff := cmp.Diff([]string{"install", "hold", "upgrade", "rotation", "accounting", "ends"}, got); diff != "" {
		t.Errorf("scenarios (-want +got):\n%s", diff)
	}
}

// By default the images of operator and relay are for amd64, and the suite's images for the
// machine that builds them. A cluster of another architecture could not run both.
func TestEveryImageIsBuiltForThisMachine(t *testing.T) {
	t.Parallel()
	for _, arguments := range makeArguments("") {
		command := exec.CommandContext(t.Context(), "make", append([]string{"--dry-run"}, arguments...)...)
		command.Dir = filepath.Join("..", "..")
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if !strings.Contains(string(out), "-platform linux/"+runtime.GOARCH) {
			t.Errorf("make would run\n%s\nwant operator and relay built for linux/%s", out, runtime.GOARCH)
		}
	}
}

func TestEveryImageIsLoadedByTheUsersCommand(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for folder, list := range map[string]string{
		"bin/images":     "sha256:1  ghcr.io/relaypool/operator:0.1.0  linux/amd64\nsha256:2  ghcr.io/relaypool/relay:0.1.0  linux/amd64\n",
		"bin/images/e2e": "sha256:3  docker.io/relaypool/localnet:dev  linux/amd64\nsha256:4  docker.io/relaypool/gate:dev  linux/amd64\nsha256:5  docker.io/relaypool/postgres:dev  linux/amd64\nsha256:6  docker.io/relaypool/vault:dev  linux/amd64\nsha256:7  docker.io/relaypool/traefik:dev  linux/amd64\nsha256:8  docker.io/relaypool/keda:dev  linux/amd64\nsha256:9  docker.io/relaypool/keda-adapter:dev  linux/amd64\nsha256:a  docker.io/relaypool/prometheus-server:dev  linux/amd64\nsha256:b  docker.io/relaypool/prometheus-operator:dev  linux/amd64\nsha256:c  docker.io/relaypool/prometheus-reloader:dev  linux/amd64\n",
		nextFolder:       "sha256:2  ghcr.io/relaypool/next/relay:0.1.0  linux/amd64\n",
	} {
		folder = filepath.Join(root, folder)
		if err := errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "digests.txt"), []byte(list), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	from := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(from, "bin/images"), 0o700), os.WriteFile(filepath.Join(from, "bin/images/digests.txt"),
		[]byte("sha256:d  ghcr.io/relaypool/earlier/operator:0.0.9  linux/amd64\nsha256:e  ghcr.io/relaypool/earlier/relay:0.0.9  linux/amd64\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(root, "loaded")
	got, err := loadImages(t.Context(), "echo >>'"+list+"'", root, from)
	if err != nil {
		t.Fatal(err)
	}
	want := images{
		operator: "ghcr.io/relaypool/operator:0.1.0", relay: "ghcr.io/relaypool/relay:0.1.0", nextRelay: "ghcr.io/relaypool/next/relay:0.1.0",
		postgres: "docker.io/relaypool/postgres:dev", chain: "docker.io/relaypool/localnet:dev", gate: "docker.io/relaypool/gate:dev",
		vault: "docker.io/relaypool/vault:dev", traefik: "docker.io/relaypool/traefik:dev",
		keda: "docker.io/relaypool/keda:dev", kedaAdapter: "docker.io/relaypool/keda-adapter:dev",
		prometheus: "docker.io/relaypool/prometheus-server:dev", prometheusOperator: "docker.io/relaypool/prometheus-operator:dev", prometheusReloader: "docker.io/relaypool/prometheus-reloader:dev",
		earlierOperator: "ghcr.io/relaypool/earlier/operator:0.0.9", earlierRelay: "ghcr.io/relaypool/earlier/relay:0.0.9",
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(images{})); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	if text, err := os.ReadFile(list); err != nil || strings.Count(string(text), ".tar\n") != 15 || !strings.Contains(string(text), "next/relay.tar") {
		t.Errorf("loaded %q, error %v; want fifteen archives", text, err)
	}
	_, err = loadImages(t.Context(), "echo no such cluster; false", root, "")
	wantError(t, err, "no such cluster")
}

func TestChartImageSplitsReference(t *testing.T) {
	t.Parallel()
	for reference, want := range map[string]map[string]any{
		"ghcr.io/relaypool/relay:0.1.0":                {"registry": "ghcr.io", "repository": "relaypool/relay", "tag": "0.1.0"},
		"registry.your.org/team/relaypool/relay:0.2-a": {"registry": "registry.your.org", "repository": "team/relaypool/relay", "tag": "0.2-a"},
		// A registry with a port has a colon, too.
		"localhost:5000/relaypool/relay:0.1.0": {"registry": "localhost:5000", "repository": "relaypool/relay", "tag": "0.1.0"},
	} {
		if diff := cmp.Diff(want, chartImage(reference)); diff != "" {
			t.Errorf("values of %s (-want +got):\n%s", reference, diff)
		}
	}
}

func TestAwaitReturnsTheLastError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		probes := 0
		wantError(t, await(t.Context(), "it is there", time.Minute, func(context.Context) error {
			if probes++; probes < 4 {
				return errors.New("the API server stalls")
			}
			return nil
		}), "")
		err := await(t.Context(), "it is there", time.Minute, func(context.Context) error { return errors.New("2 of 3 pods are ready") })
		wantError(t, err, "until it is there: ")
		wantError(t, err, "2 of 3 pods are ready")
	})
}

func TestCheckNeverProbesForTheWholeTime(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		// violated is when the event happens; failing says that every probe fails.
		violated time.Duration
		failing  bool
		want     string
	}{
		"no event":              {violated: time.Hour},
		"an event near the end": {violated: 50 * time.Second, want: "a pod is added: there are 2 pods"},
		"no probe succeeds":     {violated: time.Hour, failing: true, want: "could not be checked for 1m0s: unreachable"},
		"an event afterwards":   {violated: 61 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				wantError(t, checkNever(t.Context(), "a pod is added", time.Minute, func(context.Context) (string, error) {
					if tc.failing {
						return "", errors.New("unreachable")
					}
					if time.Since(began) >= tc.violated {
						return "there are 2 pods", nil
					}
					return "", nil
				}), tc.want)
			})
		})
	}
}

func TestNotReadyReturnsThePodsReason(t *testing.T) {
	t.Parallel()
	for want, status := range map[string]corev1.PodStatus{
		"ErrImagePull no such image": {ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image"}},
		}}},
		"ended with 2": {ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2}},
		}}},
		"not scheduled: 0/1 nodes have memory": {Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes have memory"}}},
		"Running, not ready":                   {Phase: corev1.PodRunning},
	} {
		wantError(t, notReady(&corev1.Pod{Status: status}), want)
	}
}

func TestInterruptedLogIsReadAgainAndMissingLogIsReported(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.URL.Path, "/pods/gone/"):
			http.NotFound(w, r)
		case tries.Add(1) == 1:
			// The log breaks off in the middle.
			w.Header().Set("Content-Length", "100")
			_, _ = fmt.Fprint(w, "first\n")
		default:
			_, _ = fmt.Fprint(w, "first\nsecond\n")
		}
	}))
	t.Cleanup(server.Close)
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	w := &podWatch{kube: kube, folder: t.TempDir()}
	for _, name := range []string{"demo", "gone"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "there"}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: relayContainer, ContainerID: "containerd://of-" + name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}
		w.observe(t.Context(), pod)
		w.observe(t.Context(), pod)
	}
	w.following.Wait()
	text, err := os.ReadFile(w.logPath("demo", relayContainer, "of-demo"))
	if err != nil || string(text) != "first\nsecond\n" || tries.Load() != 2 {
		t.Errorf("log %q after %d tries, error %v; want the whole log after two", text, tries.Load(), err)
	}
	if err := w.lostLogs(); err == nil || strings.Count(err.Error(), "not kept") != 1 || !strings.Contains(err.Error(), "relay of pod gone was not kept") {
		t.Errorf("lost logs: %v; want only the log of pod gone", err)
	}
}

func TestEndsWithSearchesTheLastLines(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, tc := range map[string]struct {
		log  string
		want bool
	}{
		"the last line":  {strings.Repeat("Applied Deployment\n", 1000) + "operator: " + leaseLost + "\n", true},
		"the only line":  {"operator: " + leaseLost, true},
		"an old line":    {leaseLost + "\n" + strings.Repeat("Applied Deployment\n", 1000), false},
		"another reason": {"panic: runtime error\n", false},
		"an empty log":   {"", false},
	} {
		path := filepath.Join(folder, name+".log")
		if err := os.WriteFile(path, []byte(tc.log), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := endsWith(path, leaseLost); err != nil || got != tc.want {
			t.Errorf("%s: %t, error %v; want %t", name, got, err, tc.want)
		}
	}
	// A container that ended at once may have no log file.
	if got, err := endsWith(filepath.Join(folder, "none.log"), leaseLost); err != nil || got {
		t.Errorf("a missing log: %t, error %v; want false and no error", got, err)
	}
}

func TestSuitePodsMeetTheRestrictedStandard(t *testing.T) {
	t.Parallel()
	pods := []*corev1.Pod{restrictedPod(sealed, "gate:dev", "serve")}
	if policy := sealedPolicy(); policy.Spec.PodSelector.MatchLabels["app"] != pods[0].Labels["app"] || len(policy.Spec.Ingress) != 0 {
		t.Errorf("the policy %+v does not select the sealed pod, or admits connections", policy.Spec)
	}
	text := fillStage(images{postgres: "postgres:dev", chain: "localnet:dev", gate: "gate:dev"})
	if strings.Contains(text, "_IMAGE") || strings.Contains(text, "ROOT_HISTORY") {
		t.Errorf("a placeholder in the manifest was not replaced:\n%s", text)
	}
	for decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		pod := &corev1.Pod{}
		if err := decoder.Decode(pod); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if pod.Kind == "Pod" {
			pods = append(pods, pod)
		}
	}
	if len(pods) != 4 {
		t.Errorf("%d pods were found, want 4", len(pods))
	}
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	for _, pod := range pods {
		for _, result := range evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
			if !result.Allowed {
				t.Errorf("pod %s: %s: %s", pod.Name, result.ForbiddenReason, result.ForbiddenDetail)
			}
		}
	}
}

func TestRefusedDistinguishesRefusalFromUnreachableGate(t *testing.T) {
	t.Parallel()
	dropped, unreachable := fmt.Errorf("dial: %w", errUnreachable), errors.New("the gate answered 503")
	for name, tc := range map[string]struct {
		// answers come one after another, and the last one is repeated.
		answers []error
		want    bool
		wantErr error
	}{
		"refused at once":                               {[]error{dropped}, true, nil},
		"refused once the policy is enforced":           {[]error{nil, nil, unreachable, nil, dropped}, true, nil},
		"never refused":                                 {[]error{nil}, false, nil},
		"never refused, after the gate was unreachable": {[]error{unreachable, unreachable, nil}, false, nil},
		"the gate is unreachable":                       {[]error{unreachable}, false, unreachable},
		"the gate became unreachable":                   {[]error{nil, nil, unreachable}, false, unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := -1
				got, err := refused(t.Context(), enforcedWithin, func(context.Context) error {
					n = min(n+1, len(tc.answers)-1)
					return tc.answers[n]
				})
				if got != tc.want || !errors.Is(err, tc.wantErr) {
					t.Errorf("refused %t, error %v; want %t, %v", got, err, tc.want, tc.wantErr)
				}
			})
		})
	}
}

func TestDeniedReportsAcceptedRequests(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"refused":               {apierrors.NewTooManyRequests("the disruption budget demo needs 2 healthy pods", 10), ""},
		"accepted":              {nil, "a second eviction was accepted, expected a refusal"},
		"failed in another way": {apierrors.NewInternalError(errors.New("etcd is unreachable")), "a second eviction failed, but not with the expected refusal: Internal error occurred: etcd is unreachable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantError(t, denied("a second eviction", tc.err, apierrors.IsTooManyRequests), tc.want)
		})
	}
}

func TestServedAllCountsCallsThatEndLater(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return time.Date(2026, 11, 21, 12, 0, seconds, 0, time.UTC) }
	answer := func(sent, came, status int) load.Answer {
		return load.Answer{Call: load.CallTransact, Sent: at(sent), At: at(came), Status: status, RequestID: uuid.UUID{1}}
	}
	services := []service{
		{scenario: "upgrade", from: at(0), to: at(10), bounds: serviceBounds{MaxSilence: maxSilence, MaxFailed: failedShare}},
		{scenario: "eviction", from: at(10), to: at(12), bounds: boundsWhenOneEnds(1, failedShare)},
	}
	records := []load.Record{{Requests: []load.Request{{Answers: []load.Answer{answer(1, 2, 202), answer(3, 4, 202)}}}}}
	records = append(records, load.Record{Requests: []load.Request{{Answers: []load.Answer{answer(11, 51, 0)}}}}) // allowed for a fleet of one pod
	wantError(t, servedAll(services, records), "")
	// The failure of this call comes long after the scenario.
	records[0].Requests[0].Answers = append(records[0].Requests[0].Answers, answer(5, 45, 0))
	wantError(t, servedAll(services, records), "the scenario upgrade: 0 of 3 calls were refused and 1 stayed without an answer")
}

func TestVerdictListsFailedClaims(t *testing.T) {
	t.Parallel()
	passed := verify.Result{Name: "one-spend", Examined: 3}
	wantError(t, verdict([]verify.Result{passed, passed}), "")
	many := verify.Result{Name: "answers-are-true", Faults: strings.Split("abcdefgh", "")}
	err := verdict([]verify.Result{passed, many, {Name: "swap-ends-once", Vacuous: true}})
	wantError(t, err, "answers-are-true does not hold: a; b; c; d; e; and 3 more")
	wantError(t, err, "swap-ends-once does not hold: there was nothing to examine")
	if len(many.Faults) != 8 {
		t.Error("verdict shortened the result's faults")
	}
}

func TestRequestContentIsFoundInLogsAndMetrics(t *testing.T) {
	t.Parallel()
	recordOf := func(nullifier [32]byte) []load.Record {
		return []load.Record{{Requests: []load.Request{{Inputs: shieldpool.PublicInputs{Nullifiers: [2][32]byte{nullifier, {}}}}}}}
	}
	var nullifier, other [32]byte
	for i := range nullifier {
		nullifier[i], other[i] = byte(37*i+11), byte(41*i+7)
	}
	folder := t.TempDir()
	if err := errors.Join(
		os.WriteFile(filepath.Join(folder, "demo-1.log"), []byte("Serving\nspent "+hex.EncodeToString(nullifier[:])+"\n"), 0o600),
		os.WriteFile(filepath.Join(folder, "demo-2.log"), []byte("Serving\n"), 0o600),
		os.WriteFile(filepath.Join(folder, "dry-1.log"), []byte("held "+hex.EncodeToString(other[:])+"\n"), 0o600),
		os.WriteFile(filepath.Join(folder, "notes.txt"), []byte(hex.EncodeToString(nullifier[:])), 0o600), // this file is not the log of a pod
	); err != nil {
		t.Fatal(err)
	}
	e := &verify.Evidence{Records: recordOf(nullifier)}
	s := &suite{fleets: &podWatch{folder: folder}, others: recordOf(other), pages: map[string][]byte{
		"metrics of demo-1": []byte("relaypool_up 1\n"),
		"metrics of demo-2": []byte(`relaypool_requests{nullifier="` + hex.EncodeToString(nullifier[:]) + "\"} 1\n"),
	}}
	s.searchLeaks(t, e)
	var found []string
	for _, leak := range e.Leaks {
		found = append(found, leak.Source)
	}
	slices.Sort(found)
	if diff := cmp.Diff([]string{"demo-1.log", "dry-1.log", "metrics of demo-2"}, slices.Compact(found)); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
	if e.Scanned == 0 {
		t.Error("nothing was scanned")
	}
}

// roundTrip is a function as an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRequestsOfATourAreRecorded(t *testing.T) {
	t.Parallel()
	key := func(n byte) solana.PublicKey { return solana.PublicKey(bytes.Repeat([]byte{n, n + 1}, 16)) }
	transfer := load.Request{
		Inputs: shieldpool.PublicInputs{Nullifiers: [2][32]byte{{31: 1}, {31: 2}}, Commitments: [2][32]byte{{31: 3}, {31: 4}}},
		Proofs: [][shieldpool.ProofLength]byte{{1, 2, 3}}, Notes: [][]byte{{9, 8, 7}},
	}
	withdrawal := transfer
	withdrawal.Recipient = key(3)
	swap := withdrawal
	swap.Swap = &load.Swap{Terms: shieldpool.SwapTerms{OutputMint: key(7), RecipientATA: key(5), MinOutput: 7}}
	var bodies, received [][]byte
	for _, q := range []load.Request{transfer, withdrawal, swap} {
		body, err := q.Body(0)
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, body)
	}
	// Clients also send requests to the chain and the router.
	bodies = append(bodies, []byte(`{"jsonrpc":"2.0","id":1,"method":"getSlot"}`), []byte(`[]`), []byte("not JSON"))
	sent := &recorder{next: roundTrip(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		received = append(received, body)
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, err
	})}
	client := http.Client{Transport: sent}
	for _, body := range bodies {
		answer, err := client.Post("http://demo:8080/transact", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	if diff := cmp.Diff(bodies, received); diff != "" {
		t.Errorf("forwarded bodies (-want +got):\n%s", diff)
	}
	// The mint and the minimum are not secret.
	swap.Swap = &load.Swap{Terms: shieldpool.SwapTerms{RecipientATA: key(5)}}
	var got []load.Request
	for _, r := range sent.records() {
		got = append(got, r.Requests...)
	}
	if diff := cmp.Diff([]load.Request{transfer, withdrawal, swap}, got); diff != "" {
		t.Errorf("recorded requests (-want +got):\n%s", diff)
	}
}
