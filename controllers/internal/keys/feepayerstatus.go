package keys

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/relaypool/relaypool/api/v1alpha1"
)

const (
	// minMovable is the balance, in lamports, above which an unused key is reported. A
	// smaller balance is not worth the cost of moving it.
	minMovable = 10_000
	// balanceUnit is the unit, in lamports, to which the status rounds balances down. No event
	// reports a smaller balance: the status shows it as 0, so every pass would report it again.
	balanceUnit = 10_000_000
	// defaultMinimum is the CRD's default of spec.feePayers.minimumBalanceLamports.
	defaultMinimum = 50_000_000
	// maxPayers and maxMessage are the CRD's bounds of the status. maxCause bounds a Job's
	// message inside a message of the operator, and maxNote bounds the note of an event.
	// Lengths are in bytes.
	maxPayers  = 128
	maxMessage = 1024
	maxCause   = 300
	maxNote    = 1000
	// maxNamed is how many addresses one message names at most.
	maxNamed = 3
)

// setPayers sets status.feePayers, with named keys and signers first, then the newest revision.
func (d *decision) setPayers() {
	for _, p := range d.Refs {
		if wantedCount(d.Pool) == 0 || !d.isGenerated(p.Address) {
			d.addPayer(v1alpha1.FeePayerStatus{Address: p.Address, SecretName: p.Secret, State: v1alpha1.PayerActive})
		}
	}
	for _, s := range d.Pool.Spec.FeePayers.Signers {
		if wantedCount(d.Pool) == 0 || !d.isGenerated(s.Address) {
			d.addPayer(v1alpha1.FeePayerStatus{Address: s.Address, SignerName: s.Name, State: v1alpha1.PayerActive})
		}
	}
	keys := slices.Clone(d.Keys.Keys)
	slices.SortFunc(keys, func(a, b Key) int {
		return cmp.Or(cmp.Compare(b.Revision, a.Revision), cmp.Compare(a.Index, b.Index))
	})
	for _, k := range keys {
		if wantedCount(d.Pool) > 0 {
			d.addPayer(v1alpha1.FeePayerStatus{Address: k.Address, SecretName: k.Secret, State: k.State, BackedUp: k.BackedUp})
			continue
		}
		// The spec generates no keys: keys that were generated before are
		// shown while they may have funds.
		shown := slices.ContainsFunc(d.plan.Payers, func(p v1alpha1.FeePayerStatus) bool { return p.Address == k.Address })
		if b, known := d.Balances[k.Address]; !shown && (!known || b.Lamports > minMovable) {
			d.addPayer(v1alpha1.FeePayerStatus{Address: k.Address, SecretName: k.Secret, State: v1alpha1.PayerRetired, BackedUp: k.BackedUp})
		}
	}
	for _, p := range d.lost {
		d.addPayer(v1alpha1.FeePayerStatus{Address: p.Address, SecretName: p.SecretName, State: p.State, Lost: true})
	}
	if len(d.plan.Payers) > maxPayers {
		d.plan.Payers = d.plan.Payers[:maxPayers]
	}
}

// addPayer adds a payer to status.feePayers, unless its address is already in the list: the
// API server refuses a list that repeats an address. An address repeats, for example, when a
// person has restored a lost key in a Secret with another name.
func (d *decision) addPayer(p v1alpha1.FeePayerStatus) {
	if slices.ContainsFunc(d.plan.Payers, func(other v1alpha1.FeePayerStatus) bool { return other.Address == p.Address }) {
		return
	}
	if b, known := d.Balances[p.Address]; known {
		lamports := int64(min(b.Lamports, math.MaxInt64))
		p.BalanceLamports, p.RunwayHours = &lamports, b.RunwayHours
	}
	d.plan.Payers = append(d.plan.Payers, p)
}

func lamports(p v1alpha1.FeePayerStatus) int64 {
	if p.BalanceLamports == nil {
		return 0
	}
	return max(0, *p.BalanceLamports)
}

func (d *decision) minimum() uint64 {
	if m := d.Pool.Spec.FeePayers.MinimumBalanceLamports; m != nil && *m > 0 {
		return uint64(*m)
	}
	return defaultMinimum
}

// allUnderfunded reports whether all keys are known to have less than the minimum. Only
// balances that were read after the given time count.
func (d *decision) allUnderfunded(keys []Key, after time.Time) bool {
	return !slices.ContainsFunc(keys, func(k Key) bool {
		b, known := d.Balances[k.Address]
		return !known || b.Lamports >= d.minimum() || !b.readAfter(after)
	})
}

// readAfter reports whether the balance was read after a time that is in an object of the
// API. Such a time is cut to whole seconds, so a second is added to it. readAfter returns true
// if either time is unknown.
func (b Balance) readAfter(at time.Time) bool {
	return b.At.IsZero() || at.IsZero() || b.At.After(at.Add(time.Second))
}

// anyFunded reports whether one of the keys is known to have the minimum balance.
func (d *decision) anyFunded(keys []Key) bool {
	return slices.ContainsFunc(keys, func(k Key) bool {
		b, known := d.Balances[k.Address]
		return known && b.Lamports >= d.minimum()
	})
}

// someNames joins the first few names, and counts the others.
func someNames(all []string) string {
	if len(all) <= maxNamed {
		return strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(all[:maxNamed], ", "), len(all)-maxNamed)
}

// shorten cuts a text to at most length bytes, between two characters.
func shorten(text string, length int) string {
	if len(text) <= length {
		return text
	}
	return strings.ToValidUTF8(text[:length-3], "") + "..."
}
