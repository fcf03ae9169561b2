// Package servingcert makes and renews the certificate with which the operator serves an API
// behind the API server. It needs no other component, such as cert-manager. A pair is a
// certificate and its key. One Secret has the pair, and every replica reads this Secret at an
// interval. The leader writes the pair's certificate authority to the caBundle of the
// APIService.
//
// A renewal takes three steps, so that no call fails in between. First, the leader makes the
// next pair and stores it in the Secret beside the current one. Second, the leader adds the
// next pair's authority to the APIService, and waits long enough for every API server to know
// both authorities. Third, the leader makes the next pair the current one in the Secret, and each
// replica serves it after its next read. The old authority stays trusted until it expires.
package servingcert

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// defaultInterval is the default of Options.Interval.
	defaultInterval = time.Minute
	// retryInterval is the interval while there is nothing to serve, or after an error.
	retryInterval = 5 * time.Second
	// jitter is the fraction by which an interval varies, so that replicas that were
	// started together do not read at the same time.
	jitter = 0.1
)

// Options is what a Keeper needs. Times of 0 take the defaults.
type Options struct {
	// Client creates and patches the Secret, and applies the caBundle to the APIService. Live
	// reads the Secret and the APIService from the API server, because no cache has them.
	Client client.Client
	Live   client.Reader
	// Namespace is the operator's own namespace. Secret and Service are the names of two
	// objects in it. The Secret contains the certificate. The Service leads to this server,
	// and the certificate is made for the Service's DNS name.
	Namespace, Secret, Service string
	// APIService is the name of the APIService that refers to the Service.
	APIService string
	// Elected is closed once this process leads.
	Elected <-chan struct{}
	// Now is the clock, and Random returns numbers from 0 up to 1.
	Now    func() time.Time
	Random func() float64
	Log    *slog.Logger
	// Validity is how long a certificate is valid (90 days). RenewBefore is how long before
	// the current certificate's expiry the next one is made (30 days). TrustDelay is how long
	// the APIService has to trust the next certificate's authority before the next certificate
	// is served (10 minutes). Interval is the time between reads of the Secret and the
	// APIService (1 minute).
	Validity, RenewBefore, TrustDelay, Interval time.Duration
}

// Keeper makes, renews and serves the certificate. It is safe for concurrent use, except
// for RenewOnce.
type Keeper struct {
	Options

	mutex     sync.RWMutex
	served    state
	listeners []dynamiccertificates.Listener
	ready     chan struct{}
	closeOnce sync.Once // closes ready

	// The APIService has trusted the authority with the serial number trustedSerial without
	// interruption since trustedSince. Only RenewOnce uses these fields.
	trustedSince  time.Time
	trustedSerial string
	// lastError is the text of the last RenewOnce's error; empty if there was none.
	lastError string
}

// New makes a Keeper. All options but the times are required.
func New(o Options) (*Keeper, error) {
	var missing []error
	for _, option := range []struct {
		name   string
		absent bool
	}{
		{"Client", o.Client == nil}, {"Live", o.Live == nil}, {"Namespace", o.Namespace == ""}, {"Secret", o.Secret == ""},
		{"Service", o.Service == ""}, {"APIService", o.APIService == ""}, {"Elected", o.Elected == nil},
		{"Now", o.Now == nil}, {"Random", o.Random == nil}, {"Log", o.Log == nil},
	} {
		if option.absent {
			missing = append(missing, fmt.Errorf("make keeper of the serving certificate: option %s is not set", option.name))
		}
	}
	if len(missing) > 0 {
		return nil, errors.Join(missing...)
	}
	for value, fallback := range map[*time.Duration]time.Duration{
		&o.Validity: defaultValidity, &o.RenewBefore: defaultRenewBefore, &o.TrustDelay: defaultTrustDelay, &o.Interval: defaultInterval,
	} {
		if *value == 0 {
			*value = fallback
		}
	}
	return &Keeper{Options: o, ready: make(chan struct{})}, nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica
// serves.
func (*Keeper) NeedLeaderElection() bool { return false }

// Start keeps the certificate until ctx ends. It implements manager.Runnable.
func (k *Keeper) Start(ctx context.Context) error {
	elected := k.Elected
	for {
		err := k.RenewOnce(ctx)
		if ctx.Err() != nil {
			return nil
		}
		k.logResult(ctx, err)
		wait := time.Duration(float64(k.Interval) * (1 - jitter + 2*jitter*k.Random()))
		if err != nil {
			wait = min(wait, retryInterval)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-elected:
			elected = nil // once: a closed channel is always ready
		case <-timer.C:
		}
		timer.Stop()
	}
}

// logResult logs an error only if it differs from the last one, so that an error that a person
// has to correct is not logged every few seconds.
func (k *Keeper) logResult(ctx context.Context, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != k.lastError && err != nil {
		k.Log.ErrorContext(ctx, "keeping the serving certificate failed", "error", err)
	}
	k.lastError = text
}

// isLeader reports whether this process is the leader.
func (k *Keeper) isLeader() bool {
	select {
	case <-k.Elected:
		return true
	default:
		return false
	}
}

// RenewOnce reads the Secret, creates it if it does not exist, and serves its certificate. The
// leader also renews the certificate when a renewal is due, and writes the APIService's
// caBundle. RenewOnce is idempotent.
func (k *Keeper) RenewOnce(ctx context.Context) error {
	secret, err := k.read(ctx)
	if err != nil {
		return err
	}
	found := stateOf(secret.Data)
	if !k.isLeader() {
		return k.serve(found)
	}
	var next state
	var change step
	var publishErr error
	switch served := k.servedState(); {
	case found.isValid(found.current, k.name(), k.Now()):
		var trusted bool
		trusted, publishErr = k.publish(ctx, &found)
		next, change, err = k.policy().decide(k.Now(), found, trusted, k.issue)
	case served.isValid(served.current, k.name(), k.Now()):
		// Somebody broke the Secret: write the served pair back, before a client notices.
		next, change = served, stepRestore
	default:
		next, change, err = k.policy().decide(k.Now(), found, false, k.issue)
	}
	if err != nil {
		return err
	}
	if change == stepNone {
		return errors.Join(k.serve(found), publishErr)
	}
	if err := k.write(ctx, secret, &next); err != nil {
		return err
	}
	k.Log.InfoContext(ctx, "serving certificate changed", "change", string(change), "secret", secret.Name, "expires", next.current.leaf.NotAfter)
	if err := k.serve(next); err != nil {
		return err
	}
	// Publish now, not at the next RenewOnce: no client accepts a pair whose authority it does
	// not trust.
	_, publishErr = k.publish(ctx, &next)
	return publishErr
}

func (k *Keeper) servedState() state {
	k.mutex.RLock()
	defer k.mutex.RUnlock()
	return k.served
}

func (k *Keeper) policy() policy { return policy{k.name(), k.RenewBefore} }

func (k *Keeper) issue() (*pair, *x509.Certificate, error) {
	return issue(k.names(), k.Now(), k.Validity)
}

// name is the server name that the API server verifies.
func (k *Keeper) name() string { return k.Service + "." + k.Namespace + ".svc" }

func (k *Keeper) names() []string { return []string{k.name(), k.name() + ".cluster.local"} }

// serve starts to serve the state's current pair. If this pair is invalid, serve returns an
// error, and the pair that was served before stays.
func (k *Keeper) serve(s state) error {
	if !s.isValid(s.current, k.name(), k.Now()) {
		return fmt.Errorf("the Secret %s holds no certificate for %s that is valid now: the leading operator makes a new one; see its log if that does not happen within a minute", k.Secret, k.name())
	}
	k.mutex.Lock()
	changed := k.served.current == nil || !bytes.Equal(k.served.current.cert, s.current.cert)
	k.served = s
	listeners := k.listeners
	k.mutex.Unlock()
	if changed {
		for _, l := range listeners {
			l.Enqueue()
		}
	}
	k.closeOnce.Do(func() { close(k.ready) })
	return nil
}
