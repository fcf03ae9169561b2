package node

import (
	"errors"
	"net/http"
	"runtime/pprof"
	"time"
)

// mostProfiled bounds a profile.
const mostProfiled = time.Minute

// serveProfile profiles this process' processor time, for as long as the query
// says.
func serveProfile(w http.ResponseWriter, q *http.Request) {
	d, err := time.ParseDuration(q.URL.Query().Get("for"))
	if err != nil || d <= 0 || d > mostProfiled {
		err = errors.Join(err, errors.New("for: expected a duration of up to a minute"))
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := pprof.StartCPUProfile(w); err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	defer pprof.StopCPUProfile()
	select {
	case <-q.Context().Done():
	case <-time.After(d):
	}
}
