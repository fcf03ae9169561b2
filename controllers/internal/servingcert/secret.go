package servingcert

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Keys of the Secret. Other programs expect the first three in a Secret of the type
// kubernetes.io/tls.
const (
	keyCert        = corev1.TLSCertKey
	keyKey         = corev1.TLSPrivateKeyKey
	keyAuthorities = "ca.crt"
	// These two keys contain the pair to serve next, once all clients trust its authority.
	keyNextCert = "next.crt"
	keyNextKey  = "next.key"
)

// pair is a serving certificate and its key. cert and key are PEM; leaf is the parsed
// certificate.
type pair struct {
	cert, key []byte
	leaf      *x509.Certificate
}

// state is the content of the Secret. A pair that is nil is missing or broken.
type state struct {
	current, next *pair
	// authorities has the certificate of each authority that signed a pair that some replica
	// may serve. The authorities' private keys exist nowhere.
	authorities []*x509.Certificate
}

// stateOf reads the Secret's data. Values that do not parse are left out without an error:
// decide replaces them.
func stateOf(data map[string][]byte) state {
	s := state{authorities: parseAuthorities(data[keyAuthorities])}
	s.current, _ = parsePair(data[keyCert], data[keyKey])
	s.next, _ = parsePair(data[keyNextCert], data[keyNextKey])
	return s
}

// data returns the Secret's data for the state.
func (s *state) data() map[string][]byte {
	out := map[string][]byte{keyAuthorities: bundle(s.authorities)}
	if s.current != nil {
		out[keyCert], out[keyKey] = s.current.cert, s.current.key
	}
	if s.next != nil {
		out[keyNextCert], out[keyNextKey] = s.next.cert, s.next.key
	}
	return out
}

func parsePair(cert, key []byte) (*pair, error) {
	if len(cert) == 0 && len(key) == 0 {
		return nil, errors.New("certificate and key are missing")
	}
	parsed, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("parse certificate and key: %w", err)
	}
	return &pair{cert: cert, key: key, leaf: parsed.Leaf}, nil
}

func parseAuthorities(bundle []byte) (out []*x509.Certificate) {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && c.IsCA {
			out = append(out, c)
		}
	}
	return out
}

func bundle(certificates []*x509.Certificate) []byte {
	var out bytes.Buffer
	for _, c := range certificates {
		_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}) // a Buffer returns no error
	}
	return out.Bytes()
}

// isValid reports whether clients that trust the authorities accept the pair now, for a
// server of that name.
func (s *state) isValid(p *pair, name string, now time.Time) bool {
	return p != nil && verify(p.leaf, s.authorities, name, now) == nil
}

func verify(leaf *x509.Certificate, authorities []*x509.Certificate, name string, now time.Time) error {
	roots := x509.NewCertPool()
	for _, c := range authorities {
		roots.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err //nolint:wrapcheck // callers ask only whether there is an error
}

// signerOf returns the authority that signed the pair; nil when the authority is not known.
func (s *state) signerOf(p *pair) *x509.Certificate {
	if p == nil {
		return nil
	}
	for _, c := range s.authorities {
		if bytes.Equal(c.RawSubject, p.leaf.RawIssuer) && p.leaf.CheckSignatureFrom(c) == nil {
			return c
		}
	}
	return nil
}

// labelServing marks the Secrets of this package, which writes no other Secret.
const labelServing = "relaypool.dev/serving-certificate"

// read returns the Secret, and creates it if it does not exist. When somebody deleted the
// Secret, the new one contains the pair that this process serves.
func (k *Keeper) read(ctx context.Context) (*corev1.Secret, error) {
	key := client.ObjectKey{Namespace: k.Namespace, Name: k.Secret}
	for range 2 {
		secret := new(corev1.Secret)
		err := k.Live.Get(ctx, key, secret)
		switch {
		case err == nil && secret.Labels[labelServing] != k.APIService:
			return nil, fmt.Errorf("the Secret %s lacks the label %s: %s, so it belongs to somebody else and is not changed: name another one with --external-metrics-secret, or delete it", k.Secret, labelServing, k.APIService)
		case err == nil:
			return secret, nil
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("read the serving certificate's Secret %s: %w", k.Secret, err)
		}
		made, err := k.createSecret(ctx)
		if err == nil {
			return made, nil
		}
		if !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("make the serving certificate's Secret %s: %w", k.Secret, err)
		}
		// Another replica was faster: read its Secret.
	}
	return nil, fmt.Errorf("the serving certificate's Secret %s is deleted again and again: find out who deletes it", k.Secret)
}

func (k *Keeper) createSecret(ctx context.Context) (*corev1.Secret, error) {
	s := k.servedState()
	if !s.isValid(s.current, k.name(), k.Now()) {
		var err error
		if s, _, err = k.policy().decide(k.Now(), state{}, false, k.issue); err != nil {
			return nil, err
		}
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Secret, Labels: map[string]string{
			labelServing: k.APIService, "app.kubernetes.io/managed-by": fieldOwner,
		}},
		Type: corev1.SecretTypeTLS, Data: s.data(),
	}
	if err := k.Client.Create(ctx, secret); err != nil {
		return nil, err
	}
	k.Log.InfoContext(ctx, "serving certificate created", "secret", secret.Name, "expires", s.current.leaf.NotAfter)
	return secret, nil
}

// write changes the Secret. It fails if another client has changed the Secret since it was
// read.
func (k *Keeper) write(ctx context.Context, secret *corev1.Secret, next *state) error {
	patch := client.MergeFromWithOptions(secret.DeepCopy(), client.MergeFromWithOptimisticLock{})
	data := next.data()
	// Keys that other clients added are kept.
	for key, value := range secret.Data {
		if _, written := data[key]; !written && key != keyNextCert && key != keyNextKey {
			data[key] = value
		}
	}
	secret.Data = maps.Clone(data)
	if err := k.Client.Patch(ctx, secret, patch); err != nil {
		return fmt.Errorf("change the serving certificate's Secret %s: %w", k.Secret, err)
	}
	return nil
}
