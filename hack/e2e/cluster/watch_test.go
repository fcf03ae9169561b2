package cluster

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func TestALogThatBreaksIsReadAgainAndOneThatIsGoneIsTold(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.URL.Path, "/pods/gone/"):
			http.NotFound(w, r)
		case tries.Add(1) == 1:
			// It breaks in its midst.
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
	w := &Watcher{c: &Cluster{Kube: kube}, namespace: "there", folder: t.TempDir(), known: make(map[string]bool), exits: make(map[string]Exit)}
	for name, uid := range map[string]types.UID{"demo": "7", "gone": "8"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "relay", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		w.see(t.Context(), pod)
		w.see(t.Context(), pod)
	}
	w.Close()
	text, err := os.ReadFile(filepath.Join(w.Folder(), "demo_7_relay_0.log"))
	if err != nil || string(text) != "first\nsecond\n" || tries.Load() != 2 {
		t.Errorf("log %q after %d tries, error %v; want it whole after two", text, tries.Load(), err)
	}
	if lost := w.Lost(); len(lost) != 1 || lost[0].Pod != "gone" || lost[0].Container != "relay" || lost[0].Err == nil {
		t.Errorf("lost %+v, want that of the pod that is gone", lost)
	}
}
