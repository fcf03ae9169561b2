package app

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/relaypool/relaypool/relay/contract"
	"github.com/relaypool/relaypool/relay/internal/admission"
	"github.com/relaypool/relaypool/relay/internal/submission"
	"github.com/relaypool/relaypool/relay/internal/txmgr"
)

func (a *App) openSubmissions(context.Context) error {
	c := a.options.Config
	proofAPolicy, err := submission.NewProofAPolicy(c.ProofA, a.store, c.Key.Hash(), time.Now)
	if err != nil {
		return err
	}
	a.submissions, err = submission.New(submission.Options{
		Store: a.store, Chain: a.endpoints, State: a.poolReader, Pool: a.pool, Payers: a.payers, Spending: a.caps,
		Leaves: a.commitmentIndex, ProofA: proofAPolicy, Observer: a.metrics, Log: a.log, Now: time.Now,
		Rent: a.rent.Rate, BaseFee: a.baseFee.Fee, EstimateFinalized: a.estimateFinalizedSlot, SlotDuration: a.endpoints.SlotDuration, Table: a.lookupTable, Formats: a.formats.now, Worker: uuid.New(), Concurrency: c.Concurrency, Timing: a.options.Timing,
		Price: txmgr.PriceRule{Floor: c.PriorityFeeFloor, Cap: c.PriorityFeeCap, Percentile: c.PriorityFeePercentile}, Lanes: lanes(c.Endpoints), MaxEarlyFees: c.MaxEarlyFees,
	})
	if err != nil {
		return err
	}
	if err := a.swaps.Serve(a.submissions, a.swapConcurrency()); err != nil {
		return err
	}
	a.admission, err = admission.New(admission.Options{
		Store: a.store, Pool: a.pool, State: a.poolReader, Payers: a.payers, Spending: a.caps, Key: c.Key, ProofA: proofAPolicy,
		Observer: a.metrics, Submissions: a.submissions, Ready: a.genesisGate.ready, Now: time.Now, NewID: uuid.New, CallTimeout: contract.CallTimeout,
	})
	if err != nil {
		return err
	}
	a.reader, err = submission.NewReader(a.store, a.commitmentIndex, a.log)
	a.backlog, a.swapSummary = newBacklogCache(a.reader), &swapCache{read: a.summariseSwaps}
	a.registerGauges() //nolint:contextcheck // a scrape has no context; each reading has its own timeout
	return err
}
