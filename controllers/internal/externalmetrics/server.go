package externalmetrics

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver"
	coreopenapi "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core"
	metricsopenapi "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/externalmetrics"
	metricsprovider "sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/relaypool/relaypool/relay/contract"
)

// retryAfter is the pause before another attempt to make the server.
const retryAfter = 5 * time.Second

// ServerOptions is what a Server needs.
type ServerOptions struct {
	// Listen is host:port.
	Listen string
	// Config is for requests to the API server, which authenticates and authorises users.
	Config *rest.Config
	// Provider returns the metrics' values.
	Provider metricsprovider.ExternalMetricsProvider
	// Certificate is the served certificate. Ready is closed once there is a certificate.
	Certificate dynamiccertificates.CertKeyContentProvider
	Ready       <-chan struct{}
	Log         *slog.Logger
}

// Server serves the API. It is a manager.Runnable that every replica runs.
type Server struct {
	ServerOptions
	serving chan struct{}
	address string
}

// NewServer makes a Server. All options are required.
func NewServer(o ServerOptions) (*Server, error) {
	var missing []error
	for _, option := range []struct {
		name   string
		absent bool
	}{
		{"Listen", o.Listen == ""}, {"Config", o.Config == nil}, {"Provider", o.Provider == nil},
		{"Certificate", o.Certificate == nil}, {"Ready", o.Ready == nil}, {"Log", o.Log == nil},
	} {
		if option.absent {
			missing = append(missing, fmt.Errorf("make server of external metrics: option %s is not set", option.name))
		}
	}
	if len(missing) > 0 {
		return nil, errors.Join(missing...)
	}
	return &Server{ServerOptions: o, serving: make(chan struct{})}, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica
// serves.
func (*Server) NeedLeaderElection() bool { return false }

// Serving is closed once the server accepts requests.
func (s *Server) Serving() <-chan struct{} { return s.serving }

// Address returns the host:port at which the server listens. It must not be called before Serving
// is closed.
func (s *Server) Address() string { return s.address }

// Start serves until ctx ends. When the cluster lacks something that the server needs, Start
// logs it and tries again; the operator manages fleets meanwhile. Start returns an error only
// when it cannot listen or serve.
func (s *Server) Start(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.Ready:
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.Listen)
	if err != nil {
		return fmt.Errorf("serve external metrics: %w; set another address with --external-metrics-listen", err)
	}
	lastLogged := ""
	for {
		server, err := s.newAPIServer(ctx, listener)
		if err == nil {
			s.address = listener.Addr().String()
			close(s.serving)
			s.Log.InfoContext(ctx, "serving external metrics", "address", s.address)
			if err := server.GenericAPIServer.PrepareRun().RunWithContext(ctx); err != nil {
				return fmt.Errorf("serve external metrics: %w", err)
			}
			return nil
		}
		if text := err.Error(); text != lastLogged && ctx.Err() == nil {
			lastLogged = text
			s.Log.ErrorContext(ctx, "serving external metrics failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return listener.Close()
		case <-time.After(retryAfter):
		}
	}
}

func (s *Server) newAPIServer(ctx context.Context, listener net.Listener) (*apiserver.CustomMetricsAdapterServer, error) {
	config := rest.CopyConfig(s.Config)
	config.Timeout = 0 // each call has its own timeout
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	generic := genericapiserver.NewConfig(apiserver.Codecs)
	generic.SecureServing = &genericapiserver.SecureServingInfo{
		Listener: listener, Cert: s.Certificate, MinTLSVersion: tls.VersionTLS12,
		// HTTP/2 gains nothing for an autoscaler, and gives a stranger ways to exhaust the server.
		DisableHTTP2: true,
	}
	// The server never calls itself, but the configuration is required.
	generic.LoopbackClientConfig = &rest.Config{Host: "https://" + listener.Addr().String()}
	generic.ExternalAddress = listener.Addr().String()
	generic.EnableIndex, generic.EnableProfiling, generic.EnableMetrics = false, false, false
	namer := openapinamer.NewDefinitionNamer(apiserver.Scheme)
	generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	for _, info := range []*spec.Info{generic.OpenAPIConfig.Info, generic.OpenAPIV3Config.Info} {
		info.Title, info.Version = "relaypool-operator", contract.Version
	}
	if err := authenticate(ctx, generic, c); err != nil {
		return nil, err
	}
	if generic.Authorization.Authorizer, err = authorize(c); err != nil {
		return nil, err
	}
	server, err := (&apiserver.Config{GenericConfig: generic}).Complete(nil).New("relaypool-operator", nil, s.Provider)
	if err != nil {
		return nil, fmt.Errorf("make the server: %w", err)
	}
	return server, nil
}

// definitions describe the API's types.
func definitions(ref common.ReferenceCallback) map[string]common.OpenAPIDefinition {
	out := coreopenapi.GetOpenAPIDefinitions(ref)
	for name, definition := range metricsopenapi.GetOpenAPIDefinitions(ref) {
		out[name] = definition
	}
	return out
}
