package apiserver

import (
	"context"
	"fmt"
	"os"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	admin      = "relaypool-test-admin"
	adminGroup = "system:masters" // has all permissions
)

// Config returns the configuration of a client with all permissions.
func (s *Server) Config() (*rest.Config, error) { return s.User(admin, adminGroup) }

// User returns the configuration of a client with a certificate for a user in groups. The
// user has no permissions until a role binding names the user or a group. Pods of a service
// account are the user system:serviceaccount:<namespace>:<name> in the groups
// system:serviceaccounts and system:serviceaccounts:<namespace>; ServiceAccount returns a
// client for it with a token.
func (s *Server) User(name string, groups ...string) (*rest.Config, error) {
	user, err := s.user(name, groups)
	if err != nil {
		return nil, err
	}
	config := user.Config()
	config.Host = strings.TrimSuffix(config.Host, "/")
	return config, nil
}

func (s *Server) user(name string, groups []string) (*envtest.AuthenticatedUser, error) {
	s.users.Lock()
	defer s.users.Unlock()
	// Tests make many requests at the same time; the default is 5 per second.
	return s.Plane.AddUser(envtest.User{Name: name, Groups: groups}, &rest.Config{QPS: 1000, Burst: 2000})
}

// ServiceAccount returns the configuration of a client with a token of the service
// account, which must exist. The token is valid for an hour.
func (s *Server) ServiceAccount(ctx context.Context, namespace, name string) (*rest.Config, error) {
	config, err := s.Config()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("request a token of the service account %s/%s: %w", namespace, name, err)
	}
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = token.Status.Token
	return config, nil
}

// Kubeconfig writes a kubeconfig with all permissions, and returns its path.
func (s *Server) Kubeconfig() (string, error) {
	user, err := s.user(admin, []string{adminGroup})
	if err != nil {
		return "", err
	}
	content, err := user.KubeConfig()
	if err != nil {
		return "", fmt.Errorf("write the kubeconfig: %w", err)
	}
	return s.path("kubeconfig"), os.WriteFile(s.path("kubeconfig"), content, 0o600)
}
