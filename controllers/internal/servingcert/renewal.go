package servingcert

import (
	"crypto/x509"
	"slices"
	"time"
)

// These are the defaults of the times in Options that determine when certificates are renewed.
const (
	defaultValidity    = 90 * 24 * time.Hour
	defaultRenewBefore = 30 * 24 * time.Hour
)

// maxAuthorities bounds the number of trusted authorities. Usually there are at most three:
// those of the previous, the present and the next pair.
const maxAuthorities = 8

// step is a change of the state, in words for the log.
type step string

const (
	stepNone    step = ""
	stepMake    step = "made a serving certificate"
	stepStage   step = "made the next serving certificate"
	stepPromote step = "serves the next certificate"
	stepRestore step = "put back the certificate that is served"
)

// policy determines when certificates are renewed.
type policy struct {
	name        string // the server name that clients verify
	renewBefore time.Duration
}

// decide returns the next state and the step that leads to it. trusted means that the
// APIService has trusted the authority of the next pair for long enough that all clients know
// this authority. issue makes a pair and its authority.
func (p policy) decide(now time.Time, s state, trusted bool, issue func() (*pair, *x509.Certificate, error)) (state, step, error) {
	currentValid, nextValid := s.isValid(s.current, p.name, now), s.isValid(s.next, p.name, now)
	switch {
	case nextValid && (trusted || !currentValid):
		s.current, s.next = s.next, nil
		return s.withoutExpired(now), stepPromote, nil
	case !currentValid:
		// No client accepts the present pair, so serving a pair that is not trusted yet
		// makes nothing worse.
		made, authority, err := issue()
		if err != nil {
			return s, stepNone, err
		}
		s.current, s.next, s.authorities = made, nil, append(slices.Clip(s.authorities), authority)
		return s.withoutExpired(now), stepMake, nil
	case !nextValid && now.After(s.current.leaf.NotAfter.Add(-p.renewBefore)):
		made, authority, err := issue()
		if err != nil {
			return s, stepNone, err
		}
		s.next, s.authorities = made, append(slices.Clip(s.authorities), authority)
		return s.withoutExpired(now), stepStage, nil
	default:
		return s, stepNone, nil
	}
}

// withoutExpired drops expired authorities, and the oldest beyond maxAuthorities. The valid
// authorities of earlier pairs stay, because a process may serve an earlier pair until its next
// read of the Secret.
func (s state) withoutExpired(now time.Time) state {
	var kept []*x509.Certificate
	for _, c := range s.authorities {
		if now.Before(c.NotAfter) {
			kept = append(kept, c)
		}
	}
	s.authorities = kept[max(0, len(kept)-maxAuthorities):]
	return s
}
