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

// mortal makes an operator die at one of its writes. From then on its calls do not reach
// the API server, and it gets no answers.
type mortal struct {
	// left is how many more writes succeed and are answered; the operator dies at the
	// write after them.
	left int
	// made: the write at which the operator dies is executed, and only its answer is lost.
	made bool
	// dead is closed when the operator dies.
	dead chan struct{}

	mutex sync.Mutex
	gone  bool
	// wrote lists the executed writes.
	wrote []string
}

// config returns a client configuration for an operator that dies.
func (m *mortal) config(of *rest.Config) *rest.Config {
	c := rest.CopyConfig(of)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { return &calls{m, next} })
	return c
}

type calls struct {
	*mortal
	next http.RoundTripper
}

// RoundTrip makes writes one at a time, so that no write follows the fatal one.
func (c *calls) RoundTrip(q *http.Request) (*http.Response, error) {
	if !writes(q) {
		c.mutex.Lock()
		gone := c.gone
		c.mutex.Unlock()
		if gone {
			return nil, errDead
		}
		return c.next.RoundTrip(q)
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.gone {
		return nil, errDead
	}
	if c.left == 0 && !c.made {
		return nil, c.die()
	}
	answer, err := c.next.RoundTrip(q)
	if err != nil || answer.StatusCode >= http.StatusMultipleChoices {
		return answer, err // no write
	}
	c.wrote = append(c.wrote, q.Method+" "+q.URL.Path)
	if c.left == 0 {
		return nil, errors.Join(c.die(), answer.Body.Close())
	}
	c.left--
	return answer, nil
}

func (c *calls) die() error {
	c.gone = true
	close(c.dead)
	return errDead
}

// writes reports whether a call changes the state of a rotation; events do not.
func writes(q *http.Request) bool {
	return q.Method != http.MethodGet && !strings.Contains(q.URL.Path, "/events")
}

// dieAtEachWrite runs one operator after another until done. If answered is true, each
// operator dies before its second write, and otherwise without the answer to its first.
// Together they meet every state that a death at a write can leave. dieAtEachWrite returns
// their writes.
func (r *rotation) dieAtEachWrite(t *testing.T, answered bool, done func() bool) (wrote []string) {
	t.Helper()
	for !t.Failed() {
		m := &mortal{made: !answered, dead: make(chan struct{})}
		if answered {
			m.left = 1
		}
		operator := pooltest.StartOperator(t, m.config(r.Config), pooltest.OperatorOptions{Namespaces: []string{r.Namespace}})
		over := false
		pooltest.Eventually(t, "the operator dies, or has nothing left to do", func() error {
			select {
			case <-m.dead:
				return nil
			default:
			}
			if over = done(); over {
				return nil
			}
			return fmt.Errorf("it lives, and wrote %v", m.writes())
		})
		operator.Stop(t)
		wrote = append(wrote, m.writes()...)
		if over {
			break
		}
	}
	return wrote
}

func (m *mortal) writes() []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return append([]string(nil), m.wrote...)
}
