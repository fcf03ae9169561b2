package operatormetrics

import "github.com/relaypool/relaypool/controllers/internal/apply"

// These are the outcomes of a pass.
const (
	outcomeSteady   = "steady"
	outcomeChanged  = "changed"
	outcomeHeld     = "held" // an object is refused, foreign, waiting or contested
	outcomeConflict = "conflict"
	outcomeFailed   = "failed"
)

func outcomeOf(result *apply.Result, err error) string {
	switch {
	case apply.OnlyConflicts(err):
		return outcomeConflict
	case err != nil:
		return outcomeFailed
	case len(result.Refused)+len(result.Foreign)+len(result.Waiting)+len(result.Contested) > 0:
		return outcomeHeld
	case result.Changed():
		return outcomeChanged
	default:
		return outcomeSteady
	}
}
