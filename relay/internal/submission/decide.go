package submission

import (
	"github.com/relaypool/relaypool/relay/onchain"
	"github.com/relaypool/relaypool/relay/shieldpool"
)

// verdict is what one search of the chain shows about one attempt.
type verdict = onchain.Fate

const (
	mayLand       = onchain.MayLand
	landed        = onchain.Landed
	failedOnChain = onchain.FailedOnChain
	expired       = onchain.Expired
	forgotten     = onchain.Forgotten
)

// noteFact is what is known of a submission's nullifiers.
type noteFact int

const (
	notesUnread noteFact = iota
	notesUnspent
	// notesSpentByUs: a transaction of this submission spent the notes.
	notesSpentByUs
	// notesSpentByOther: a finalized transaction of a stranger or of another submission spent
	// the notes.
	notesSpentByOther
	// notesSpentNotFinal: as notesSpentByOther, but the transaction is not finalized, and a
	// fork may still roll it back.
	notesSpentNotFinal
	// notesSpenderUnknown: the notes are spent, and no history shows by whom.
	notesSpenderUnknown
)

// rootFact is what is known of a submission's root.
type rootFact int

const (
	rootUnread rootFact = iota
	rootInHistory
	// rootGone: the root history no longer has the root, or the root's fork died.
	rootGone
	// rootNotSeen: the root history does not have the root, and too few leaves followed the
	// root to evict it.
	rootNotSeen
	// rootUnverifiable: the tree account contradicts itself, so that only the program can decide.
	rootUnverifiable
)

// facts are what is known about a submission in the state processing, to decide its next step. The
// accounts are read after the search that gives the verdicts.
type facts struct {
	verdicts []verdict
	notes    noteFact
	root     rootFact
	// class is the class of a failure on the chain or in simulation; "" for none.
	class shieldpool.Class
	// lagRuledOut is true once the submission has had rootLagTries tries. If the program refuses
	// the root even now, a lagging node is not the reason. If the tree account lacks the root,
	// treatRootAsGone decides.
	lagRuledOut bool
	// early is true if an early attempt may be signed while earlier ones may land.
	early bool
}

// step is the next action.
type step int

const (
	// stepLand: an attempt landed.
	stepLand step = iota
	// stepTrack: an attempt may still land.
	stepTrack
	// stepNoHistory: the endpoints cannot show whether an attempt landed, or who spent the notes.
	stepNoHistory
	// stepReadNotes and stepReadRoot read the accounts.
	stepReadNotes
	stepReadRoot
	// stepAdopt: a transaction of this submission spent the notes, although no live attempt
	// landed.
	stepAdopt
	// stepFailSpent, stepFailRoot and stepFailClass end the submission.
	stepFailSpent
	stepFailRoot
	stepFailClass
	// stepHold: the deployment is at fault; stepRetry: a later try may succeed. In both cases
	// the submission is tried again later.
	stepHold
	stepRetry
	// stepSign: no attempt can land any more, and a new one may be signed.
	stepSign
)

// decide is the only place that decides the next step from the facts. Before an attempt is
// signed or the submission fails, every earlier attempt must be dead, and the nullifiers must
// have been read since then. An early attempt is the exception.
func decide(f *facts) step {
	var anyMayLand, anyForgotten bool
	for _, v := range f.verdicts {
		switch v {
		case landed:
			return stepLand
		case mayLand:
			anyMayLand = true
		case forgotten:
			anyForgotten = true
		case failedOnChain, expired:
		}
	}
	switch {
	case anyMayLand && f.early && !anyForgotten:
		return decideEarly(f)
	case anyMayLand:
		return stepTrack
	case f.notes == notesUnread:
		return stepReadNotes
	case f.notes == notesSpentByUs:
		return stepAdopt
	case f.notes == notesSpenderUnknown:
		return stepNoHistory
	case f.notes == notesSpentByOther:
		return stepFailSpent
	case f.notes == notesSpentNotFinal:
		return stepRetry
	case anyForgotten:
		return stepNoHistory
	case f.root == rootUnread:
		return stepReadRoot
	case f.root == rootGone:
		return stepFailRoot
	case f.root == rootNotSeen:
		return stepRetry
	default:
		return afterClass(f)
	}
}

// decideEarly decides the next step while attempts may land, and an early attempt may be signed. It is
// signed only if it would succeed without them.
func decideEarly(f *facts) step {
	switch {
	case f.class != "":
		return stepTrack
	case f.notes == notesUnread:
		return stepReadNotes
	case f.notes == notesSpentByUs:
		return stepAdopt
	case f.notes != notesUnspent:
		return stepTrack
	case f.root == rootUnread:
		return stepReadRoot
	case f.root == rootInHistory:
		return stepSign
	default:
		return stepTrack
	}
}
