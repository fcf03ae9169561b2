package admission

import (
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// NoteBounds returns how many bytes of encrypted notes fit into each kind of transaction in the
// format before V1. The network always accepts that format.
func (a *Admission) NoteBounds() map[shieldpool.Kind]int {
	return a.bounds[shieldpool.OlderFormat(a.Submissions.Table)]
}

// NoteBoundsByFormat returns how many bytes of encrypted notes fit into each kind of transaction
// of the formats that the relay sends now.
func (a *Admission) NoteBoundsByFormat() shieldpool.NoteBounds {
	return a.bounds.Of(a.Submissions.SendFormats())
}

// checkNewNotes refuses notes that are too long for every format that this relay sends now.
func (a *Admission) checkNewNotes(call *shieldpool.Call) error {
	return shieldpool.CheckNotes(call.Notes, a.NoteBoundsByFormat().Largest(call.Kind()))
}
