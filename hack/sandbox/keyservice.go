package sandbox

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// SignerFaults are the faults that a key service can have.
func SignerFaults() []string { return []string{"dies", "slow", "sealed", "signs wrongly"} }

// KeyService speaks the protocol of Vault's engine Transit around one payer's key.
type KeyService struct {
	key ed25519.PrivateKey
	// Fault is the fault that is on; "" for none.
	Fault atomic.Value
	// Signed counts the signatures that were made without a fault.
	Signed atomic.Int64
}

// ServeHTTP implements http.Handler.
func (k *KeyService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct{ Input []byte }
	if r.Method != http.MethodGet && json.NewDecoder(r.Body).Decode(&request) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	signature := ed25519.Sign(k.key, request.Input)
	switch k.Fault.Load() {
	case "dies":
		panic(http.ErrAbortHandler) // the connection ends without an answer
	case "slow":
		time.Sleep(3 * time.Second) // longer than a relay waits for one call
	case "sealed":
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case "signs wrongly":
		signature[0] ^= 1
	case "":
		if r.Method != http.MethodGet {
			k.Signed.Add(1)
		}
	}
	data := map[string]any{"signature": "vault:v1:" + base64.StdEncoding.EncodeToString(signature)}
	if r.Method == http.MethodGet {
		data = map[string]any{"type": "ed25519", "supports_signing": true, "latest_version": 1, "keys": map[string]any{"1": map[string]any{"public_key": []byte(k.key.Public().(ed25519.PublicKey))}}}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
}

// StartKeyService moves the last payer's key from its file into a key service, unless it is the only
// payer. It returns the relays' flag. The service ends with ctx.
func (s *Sandbox) StartKeyService(ctx context.Context) (k *KeyService, flags []string, err error) {
	k = new(KeyService)
	k.Fault.Store("")
	last := len(s.Payers)
	if last < 2 {
		return k, nil, nil
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("start the key service: %w", err)
	}
	payer := s.Payers[last-1]
	k.key = ed25519.PrivateKey(payer)
	server := &http.Server{Handler: k, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	list, token := s.File("signers.yaml"), s.File("signer-token")
	text := fmt.Sprintf("- {name: vault, address: %s, vaultTransit: {url: 'http://%s', key: payer, keyVersion: 1, tokenFile: %s}}\n", payer.PublicKey(), listener.Addr(), token)
	for file, content := range map[string]string{list: text, token: "token"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return nil, nil, fmt.Errorf("write the list of signers: %w", err)
		}
	}
	return k, []string{"--fee-payer-signers-file=" + list}, os.Remove(s.PayerFile(last))
}
