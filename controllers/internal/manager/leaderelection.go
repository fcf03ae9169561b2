package manager

import (
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/relaypool/relaypool/controllers/internal/settings"
)

// electLeader sets the options by which one of several replicas holds the Lease. The replicas that
// do not lead fill their caches too, so that a takeover is fast.
func electLeader(o *ctrl.Options, cfg *settings.Config) {
	o.LeaderElection = cfg.LeaderElect
	o.LeaderElectionID = cfg.Leading.Name
	o.LeaderElectionNamespace = cfg.OperatorNamespace
	o.LeaderElectionReleaseOnCancel = true // safe, because the process ends as soon as Run returns
	o.LeaseDuration = new(cfg.Duration)
	o.RenewDeadline = new(cfg.RenewDeadline)
	o.RetryPeriod = new(cfg.RetryPeriod)
	o.Controller.EnableWarmup = new(true)
}
