package txmgr

import "github.com/relaypool/relaypool/relay/shieldpool"

// IsPermanent reports whether a transaction that fails with the class fails whenever it is sent
// again.
func IsPermanent(class shieldpool.Class) bool {
	switch class {
	case shieldpool.ClassStaleProof, shieldpool.ClassSpent, shieldpool.ClassBadInput, shieldpool.ClassPolicy,
		shieldpool.ClassRecipientRent, shieldpool.ClassBug, shieldpool.ClassRaiseCompute:
		return true
	default:
		return false
	}
}
