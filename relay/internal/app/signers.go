package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/relaypool/relaypool/relay/cafile"
	"github.com/relaypool/relaypool/relay/internal/config"
	"github.com/relaypool/relaypool/relay/internal/signer"
)

// Signers makes the signers of the list, in its order. It calls no key service. called may be nil.
func Signers(ctx context.Context, list []config.Signer, log *slog.Logger, called func(name, outcome string, took time.Duration)) ([]*signer.Signer, error) {
	var signers []*signer.Signer
	for _, c := range list {
		service, err := keyService(ctx, c, log)
		if err != nil {
			return nil, fmt.Errorf("signer %s: %w", c.Name, err)
		}
		s, err := signer.New(signer.Options{Name: c.Name, Address: c.Address, Service: service, Log: log, Now: time.Now, Rand: rand.Float64, Called: called})
		if err != nil {
			return nil, fmt.Errorf("signer %s: %w", c.Name, err)
		}
		signers = append(signers, s)
	}
	return signers, nil
}

func keyService(ctx context.Context, c config.Signer, log *slog.Logger) (signer.Service, error) {
	switch {
	case c.Vault != nil:
		v := c.Vault
		return signer.NewVaultTransit(signer.VaultTransitOptions{
			URL: v.URL, Namespace: v.Namespace, Mount: v.Mount, Key: v.Key, KeyVersion: v.KeyVersion, CAFile: v.CAFile,
			TokenFile: v.TokenFile, KubernetesRole: v.KubernetesRole, KubernetesMount: v.KubernetesMount, JWTFile: v.JWTFile,
			Now: time.Now, CAFileChanged: cafile.LogChanges(log, "signer", c.Name),
		})
	case c.AWS != nil:
		a := c.AWS
		return signer.NewAWSKMS(ctx, signer.AWSKMSOptions{KeyID: a.KeyID, Region: a.Region, Endpoint: a.Endpoint, CredentialsFile: a.CredentialsFile})
	default:
		g := c.GCP
		return signer.NewGCPKMS(ctx, signer.GCPKMSOptions{KeyVersion: g.KeyVersion, Endpoint: g.Endpoint, CredentialsFile: g.CredentialsFile})
	}
}

// CheckSigners compares the keys of all services with the addresses. A service with another key is
// an error. One that does not answer is none: other fee payers work meanwhile, Run tries it again,
// and no signature is used that the address does not verify.
func CheckSigners(ctx context.Context, signers []*signer.Signer, log *slog.Logger) error {
	errs := make([]error, len(signers))
	var checks sync.WaitGroup
	for i, s := range signers {
		checks.Go(func() { errs[i] = s.Check(ctx) })
	}
	checks.Wait()
	var wrong []error
	for i, err := range errs {
		switch {
		case errors.Is(err, signer.ErrWrongKey):
			wrong = append(wrong, err)
		case err == nil:
			log.InfoContext(ctx, "signer checked", "signer", signers[i].Name(), "payer", signers[i].PublicKey())
		}
	}
	return errors.Join(wrong...)
}
