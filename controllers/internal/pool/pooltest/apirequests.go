package pooltest

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
)

// Request is a request to an API server.
type Request struct {
	// Method is the HTTP method: GET also for lists and watches.
	Method string
	// Resource is the plural name of the resource, with the subresource if there is one, such
	// as relaypools/status. For cluster-scoped requests it is the URL's path.
	Resource string
	// Name is the name of the object; empty for lists, watches and creations.
	Name string
	// Manager is the field manager that the request names; empty if it names none.
	Manager string
	// Status is the HTTP status; 0 when there was no answer.
	Status int
}

// String returns the request as readable text: PUT relaypools/status demo.
func (r Request) String() string {
	return strings.TrimSpace(r.Method + " " + r.Resource + " " + r.Name)
}

// Writes reports whether the request asks for a change, even one that changes nothing.
func (r Request) Writes() bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// Traffic records requests to an API server. So a test can check reads, and writes that
// change nothing, which the objects do not show.
type Traffic struct {
	// OnAnswer is called with each answered request, before the client gets the
	// answer. It may be nil, and must not change after the first request.
	OnAnswer func(Request)

	mutex    sync.Mutex
	requests []Request
}

// Wrap returns a transport that sends requests through next, and records them.
func (c *Traffic) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		request := requestOf(r)
		if err == nil {
			request.Status = answer.StatusCode
		}
		c.mutex.Lock()
		c.requests = append(c.requests, request)
		c.mutex.Unlock()
		if err == nil && c.OnAnswer != nil {
			c.OnAnswer(request)
		}
		return answer, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func requestOf(r *http.Request) Request {
	request := Request{Method: r.Method, Resource: r.URL.Path, Manager: r.URL.Query().Get("fieldManager")}
	_, inside, ok := strings.Cut(r.URL.Path, "/namespaces/")
	parts := strings.Split(inside, "/") // namespace, resource, name, subresource
	if !ok || len(parts) < 2 {
		return request
	}
	request.Resource = parts[1]
	if len(parts) > 2 {
		request.Name = parts[2]
	}
	if len(parts) > 3 {
		request.Resource += "/" + parts[3]
	}
	return request
}

// Take returns and removes the requests that were recorded since the last Take.
func (c *Traffic) Take() []Request {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	requests := c.requests
	c.requests = nil
	return requests
}

// Proxy returns a client configuration for another process. The process reaches the API
// server through the recording transport, with the rights of config.
func (c *Traffic) Proxy(t testing.TB, config *rest.Config) *rest.Config {
	t.Helper()
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     c.Wrap(transport),
		FlushInterval: -1, // for watches
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return &rest.Config{Host: server.URL}
}
