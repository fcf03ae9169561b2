// Command vault runs HashiCorp's Vault in memory, with the engine Transit and the auth method
// kubernetes, for tests of the relay's signer. Whoever knows its root token has all its keys.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/hashicorp/go-hclog"
	kubernetes "github.com/hashicorp/vault-plugin-auth-kubernetes"
	"github.com/hashicorp/vault/builtin/logical/transit"
	"github.com/hashicorp/vault/helper/namespace"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"github.com/hashicorp/vault/vault"
)

func main() {
	address := flag.String("listen", "127.0.0.1:8200", "`address` to serve at: loopback, unless it is a pod of a test's cluster")
	token := flag.String("token", "root", "the root `token`")
	certificate := flag.String("certificate", "", "`file` with the certificate in PEM; without it, HTTP is served")
	key := flag.String("key", "", "`file` with the certificate's key")
	flag.Parse()
	ctx := namespace.RootContext(context.Background())
	core, err := start(ctx, *token)
	if err != nil {
		log.Fatal("start vault: ", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	handler := vaulthttp.Handler.Handler(&vault.HandlerProperties{Core: core, ListenerConfig: new(configutil.Listener)})
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	if *certificate != "" {
		fmt.Println("listening on https://" + listener.Addr().String())
		log.Fatal("serve: ", server.ServeTLS(listener, *certificate, *key))
	}
	fmt.Println("listening on http://" + listener.Addr().String())
	log.Fatal("serve: ", server.Serve(listener))
}

// start returns an unsealed Vault with its mounts.
func start(ctx context.Context, token string) (*vault.Core, error) {
	logger := hclog.New(&hclog.LoggerOptions{Output: os.Stderr, Level: hclog.Warn})
	storage, err := inmem.NewInmem(nil, logger)
	if err != nil {
		return nil, err
	}
	engines, methods := factories{"transit": transit.Factory}, factories{"kubernetes": kubernetes.Factory}
	core, err := vault.NewCore(&vault.CoreConfig{
		Physical: storage, Logger: logger, DisableMlock: true, LogicalBackends: engines, CredentialBackends: methods,
		BuiltinRegistry: registry{consts.PluginTypeSecrets: engines, consts.PluginTypeCredential: methods},
	})
	if err != nil {
		return nil, err
	}
	secrets, err := core.Initialize(ctx, &vault.InitParams{BarrierConfig: &vault.SealConfig{SecretShares: 1, SecretThreshold: 1}})
	if err != nil {
		return nil, err
	}
	if _, err := core.Unseal(secrets.SecretShares[0]); err != nil {
		return nil, err
	}
	for path, data := range map[string]map[string]any{
		"auth/token/create":  {"id": token, "policies": []string{"root"}, "no_parent": true},
		"sys/mounts/transit": {"type": "transit"}, "sys/auth/kubernetes": {"type": "kubernetes"},
	} {
		request := &logical.Request{Operation: logical.UpdateOperation, Path: path, Data: data, ClientToken: secrets.RootToken}
		answer, err := core.HandleRequest(ctx, request)
		if err := errors.Join(err, answer.Error()); err != nil {
			return nil, fmt.Errorf("write %s: %w", path, err)
		}
	}
	return core, nil
}
