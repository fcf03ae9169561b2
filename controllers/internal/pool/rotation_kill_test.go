package pool_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/relaypool/relaypool/controllers/internal/pool/pooltest"
)

// errDead is returned by the calls of a dead operator.
var errDead = errors.New("the operator is dead")

// operatorKiller makes an operator die at one of its writes. After that, the operator's
// calls fail and do not reach the API server.
type operatorKiller struct {
	// writesLeft is how many more writes succeed and are answered. The operator dies at the
	// next write.
	writesLeft int
	// executeLast: the write at which the operator dies is executed, and only its answer is
	// lost.
	executeLast bool
	// died is closed when the operator dies.
	died chan struct{}

	mutex sync.Mutex
	dead  bool
	// executed lists the executed writes.
	executed []string
}

// config returns a client configuration for an operator that dies.
func (m *operatorKiller) config(base *rest.Config) *rest.Config {
	c := rest.CopyConfig(base)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return &killerTransport{m, next} })
	return c
}

type killerTransport struct {
	*operatorKiller
	next http.RoundTripper
}

// RoundTrip makes writes one at a time, so that no write follows the last one.
func (c *killerTransport) RoundTrip(q *http.Request) (*http.Response, error) {
	if !isWrite(q) {
		c.mutex.Lock()
		dead := c.dead
		c.mutex.Unlock()
		if dead {
			return nil, errDead
		}
		return c.next.RoundTrip(q)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.dead {
		return nil, errDead
	}
	if c.writesLeft == 0 && !c.executeLast {
		return nil, c.die()
	}
	answer, err := c.next.RoundTrip(q)
	if err != nil || answer.StatusCode >= http.StatusMultipleChoices {
		return answer, err // nothing was written
	}
	c.executed = append(c.executed, q.Method+" "+q.URL.Path)
	if c.writesLeft == 0 {
		return nil, errors.Join(c.die(), answer.Body.Close())
	}
	c.writesLeft--
	return answer, nil
}

func (c *killerTransport) die() error {
	c.dead = true
	close(c.died)
	return errDead
}

// isWrite reports whether a call can change the state of a rotation; events cannot.
func isWrite(q *http.Request) bool {
	return q.Method != http.MethodGet && !strings.Contains(q.URL.Path, "/events")
}

// killAtEachWrite runs one operator after another until done returns true. If answered is
// true, each operator dies before its second write is executed. Otherwise each dies before
// it gets the answer to its first write. So every state that a death at a write can leave
// occurs. killAtEachWrite returns the executed writes.
func (r *rotation) killAtEachWrite(t *testing.T, answered bool, done func() bool) (executed []string) {
	t.Helper()
	for !t.Failed() {
		m := &operatorKiller{executeLast: !answered, died: make(chan struct{})}
		if answered {
			m.writesLeft = 1
		}
		operator := pooltest.StartOperator(t, m.config(r.Config), pooltest.OperatorOptions{Namespaces: []string{r.Namespace}})
		over := false
		pooltest.Eventually(t, "the operator dies, or has nothing left to do", func() error {
			select {
			case <-m.died:
				return nil
			default:
			}
			if over = done(); over {
				return nil
			}
			return fmt.Errorf("it runs; its writes are %v", m.executedWrites())
		})
		operator.Stop(t)
		executed = append(executed, m.executedWrites()...)
		if over {
			break
		}
	}
	return executed
}

func (m *operatorKiller) executedWrites() []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return append([]string(nil), m.executed...)
}
