package build

import (
	"path"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/relaypool/relaypool/api/v1alpha1"
	"github.com/relaypool/relaypool/relay/contract"
)

// endpoint is an item of the relay's list of endpoints.
type endpoint struct {
	Name              string   `json:"name"`
	URL               string   `json:"url,omitempty"`
	URLFile           string   `json:"urlFile,omitempty"`
	WebSocketURL      string   `json:"websocketURL,omitempty"`
	CAFile            string   `json:"caFile,omitempty"`
	Roles             []string `json:"roles,omitempty"`
	RequestsPerSecond int32    `json:"requestsPerSecond,omitempty"`
	Tip               *tip     `json:"tip,omitempty"`
}

// tip is an endpoint's tip in the relay's list.
type tip struct {
	Accounts    []string `json:"accounts"`
	MinLamports int64    `json:"minLamports"`
	MaxLamports int64    `json:"maxLamports"`
	Use         string   `json:"use,omitempty"`
}

// fallbackRouter is an item of the relay's list of fallback routers.
type fallbackRouter struct {
	Name              string `json:"name"`
	URL               string `json:"url,omitempty"`
	URLFile           string `json:"urlFile,omitempty"`
	APIKeyFile        string `json:"apiKeyFile,omitempty"`
	CAFile            string `json:"caFile,omitempty"`
	RequestsPerSecond int32  `json:"requestsPerSecond,omitempty"`
}

// noWebSocket is the value of websocketURL with which the relay uses no WebSocket for an
// endpoint.
const noWebSocket = "none"

// configMap makes the ConfigMap of the files that are not secret. If a URL is in a Secret, the
// ConfigMap contains the path at which pods mount the URL.
func configMap(in Input) Object {
	name := in.Pool.Name
	return Object{KindConfigMap, name, corev1ac.ConfigMap(name, in.Pool.Namespace).
		WithLabels(Labels(name)).
		WithData(configFiles(in.Pool))}
}

// configFiles returns the content of each file of the ConfigMap, by the file's name.
func configFiles(pool *v1alpha1.RelayPool) map[string]string {
	endpoints := make([]endpoint, 0, len(pool.Spec.Solana.Endpoints))
	for _, e := range pool.Spec.Solana.Endpoints {
		item := endpoint{Name: e.Name, URL: e.URL, RequestsPerSecond: e.RequestsPerSecond}
		for _, role := range e.Roles {
			item.Roles = append(item.Roles, lower(role))
		}
		if e.URLSecretRef != nil {
			item.URLFile = contract.EndpointURLFile(e.Name)
		}
		if e.CAFrom != nil {
			item.CAFile = contract.EndpointCAFile(e.Name)
		}
		if e.WebSocket == string(v1alpha1.Disabled) {
			item.WebSocketURL = noWebSocket
		}
		if t := e.Tip; t != nil {
			item.Tip = &tip{Accounts: t.Accounts, MinLamports: t.MinLamports, MaxLamports: t.MaxLamports, Use: lower(t.Use)}
		}
		endpoints = append(endpoints, item)
	}
	files := map[string]string{path.Base(contract.EndpointsFile): marshal(endpoints)}
	if messages := pool.Spec.ViewingKeys.Messages; len(messages) > 0 {
		files[path.Base(contract.SignInMessagesFile)] = marshal(messages)
	}
	if swap := pool.Spec.Swap; swap != nil && len(swap.FallbackRouters) > 0 {
		files[path.Base(contract.FallbackRoutersFile)] = marshal(fallbackRouters(swap))
	}
	if len(pool.Spec.FeePayers.Signers) > 0 {
		files[path.Base(contract.SignersFile)] = marshal(signers(pool.Spec.FeePayers.Signers))
	}
	return files
}

func fallbackRouters(swap *v1alpha1.Swap) []fallbackRouter {
	routers := make([]fallbackRouter, len(swap.FallbackRouters))
	for i, r := range swap.FallbackRouters {
		routers[i] = fallbackRouter{Name: r.Name, URL: r.URL, RequestsPerSecond: r.RequestsPerSecond}
		if r.URLSecretRef != nil {
			routers[i].URLFile = contract.FallbackRouterURLFile(r.Name)
		}
		if r.APIKeySecretRef != nil {
			routers[i].APIKeyFile = contract.FallbackRouterAPIKeyFile(r.Name)
		}
		if r.CAFrom != nil {
			routers[i].CAFile = contract.FallbackRouterCAFile(r.Name)
		}
	}
	return routers
}

// marshal returns a value as YAML.
func marshal(value any) string {
	content, err := yaml.Marshal(value)
	if err != nil {
		panic("build: strings and numbers cannot be written as YAML: " + err.Error())
	}
	return string(content)
}
