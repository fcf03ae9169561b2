package externalmetrics

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/union"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
)

const (
	// authenticationConfig is a ConfigMap in kube-system. It has the certificate authorities and
	// header names that a server behind the API server needs to authenticate requests.
	authenticationConfig = "extension-apiserver-authentication"
	// cacheTime is how long the API server's answers about users are cached, and
	// reviewTimeout is how long one answer may take.
	cacheTime     = 10 * time.Second
	reviewTimeout = 10 * time.Second
)

// backoff returns the pauses between the attempts of a token review or an access review.
func backoff() *wait.Backoff {
	return &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5}
}

// frontProxy has the certificate authority of the API server's client certificate, and the
// headers in which the API server names the user of a request. It follows changes of the
// ConfigMap authenticationConfig.
type frontProxy struct {
	*dynamiccertificates.ConfigMapCAController
	*headerrequest.RequestHeaderAuthRequestController
}

var (
	_ dynamiccertificates.CAContentProvider = (*frontProxy)(nil)
	_ dynamiccertificates.ControllerRunner  = (*frontProxy)(nil)
)

func newFrontProxy(c kubernetes.Interface) (*frontProxy, error) {
	authorities, err := dynamiccertificates.NewDynamicCAFromConfigMapController("front-proxy", metav1.NamespaceSystem, authenticationConfig, "requestheader-client-ca-file", c)
	if err != nil {
		return nil, fmt.Errorf("watch the API server's authority: %w", err)
	}
	return &frontProxy{authorities, headerrequest.NewRequestHeaderAuthRequestController(authenticationConfig, metav1.NamespaceSystem, c,
		"requestheader-username-headers", "requestheader-uid-headers", "requestheader-group-headers", "requestheader-extra-headers-prefix", "requestheader-allowed-names")}, nil
}

// RunOnce implements dynamiccertificates.ControllerRunner.
func (f *frontProxy) RunOnce(ctx context.Context) error {
	return errors.Join(f.ConfigMapCAController.RunOnce(ctx), f.RequestHeaderAuthRequestController.RunOnce(ctx))
}

// Run implements dynamiccertificates.ControllerRunner.
func (f *frontProxy) Run(ctx context.Context, workers int) {
	go f.ConfigMapCAController.Run(ctx, workers)
	go f.RequestHeaderAuthRequestController.Run(ctx, workers)
	<-ctx.Done()
}

// authenticate makes the server accept users that the API server names, clients with a
// certificate of the cluster, and users whose token the API server accepts. All other
// requests are refused.
func authenticate(ctx context.Context, generic *genericapiserver.Config, c kubernetes.Interface) error {
	proxy, err := newFrontProxy(c)
	if err != nil {
		return err
	}
	if err := proxy.RunOnce(ctx); err != nil {
		return fmt.Errorf("read ConfigMap %s/%s: %w; bind the Role extension-apiserver-authentication-reader there to the operator's service account, as config/external-metrics and the chart do", metav1.NamespaceSystem, authenticationConfig, err)
	}
	clients, err := dynamiccertificates.NewDynamicCAFromConfigMapController("client-ca", metav1.NamespaceSystem, authenticationConfig, "client-ca-file", c)
	if err != nil {
		return fmt.Errorf("watch the cluster's authority: %w", err)
	}
	headers := &authenticatorfactory.RequestHeaderConfig{
		CAContentProvider:   proxy,
		UsernameHeaders:     headerrequest.StringSliceProviderFunc(proxy.UsernameHeaders),
		UIDHeaders:          headerrequest.StringSliceProviderFunc(proxy.UIDHeaders),
		GroupHeaders:        headerrequest.StringSliceProviderFunc(proxy.GroupHeaders),
		ExtraHeaderPrefixes: headerrequest.StringSliceProviderFunc(proxy.ExtraHeaderPrefixes),
		AllowedClientNames:  headerrequest.StringSliceProviderFunc(proxy.AllowedClientNames),
	}
	info := &generic.Authentication
	if err := errors.Join(info.ApplyClientCert(clients, generic.SecureServing), info.ApplyClientCert(proxy, generic.SecureServing)); err != nil {
		return fmt.Errorf("accept client certificates: %w", err)
	}
	info.RequestHeaderConfig = headers
	info.Authenticator, _, err = authenticatorfactory.DelegatingAuthenticatorConfig{
		TokenAccessReviewClient: c.AuthenticationV1(), TokenAccessReviewTimeout: reviewTimeout, WebhookRetryBackoff: backoff(),
		CacheTTL: cacheTime, ClientCertificateCAContentProvider: clients, RequestHeaderConfig: headers,
	}.New()
	if err != nil {
		return fmt.Errorf("make the authenticator: %w", err)
	}
	return nil
}

// authorize lets the API server decide which user may read what. Members of system:masters
// may read everything, because the API server probes this server as one of them.
func authorize(c kubernetes.Interface) (authorizer.Authorizer, error) {
	delegated, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: c.AuthorizationV1(), AllowCacheTTL: cacheTime, DenyCacheTTL: cacheTime, WebhookRetryBackoff: backoff(),
	}.New()
	if err != nil {
		return nil, fmt.Errorf("make the authorizer: %w", err)
	}
	both, err := union.New(
		union.NamedAuthorizer{AuthorizerName: "masters", Authorizer: authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup)},
		union.NamedAuthorizer{AuthorizerName: "delegated", Authorizer: delegated},
	)
	if err != nil {
		return nil, fmt.Errorf("make the authorizer: %w", err)
	}
	return both, nil
}
