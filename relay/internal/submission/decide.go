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
	// notesUnknown: the notes are spent, and no history shows by whom.
	notesUnknown
)

// rootFact is what is known of a submission's root.
type rootFact int

const (
	rootUnread rootFact = iota
	rootInHistory
	rootGone
	// rootNotSeen: the root history does not have the root, and too few leaves followed the
	// root to evict it.
	rootNotSeen
	// rootUnverifiable: the tree account contradicts itself, so that only the program can decide.
	rootUnverifiable
)

// facts are what is known about a processing submission, to decide the next step. Facts
// from accounts are newer than the verdicts.
type facts struct {
	verdicts []verdict
	notes    noteFact
	root     rootFact
	// class is why an attempt failed on the chain or in simulation; "" for none.
	class shieldpool.Class
	// rootLongMissing reports that the submission was tried so often that a lagging node no
	// longer explains why the program, or the tree that was read, does not have the root.
	rootLongMissing bool
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
	// stepHold: the deployment is at fault; stepRetry: a later try may succeed. Both are
	// tried again later.
	stepHold
	stepRetry
	// stepSign: no attempt can land any more, and a new one may be signed.
	stepSign
)

// decide is the only place that decides the next step from the facts. No attempt is signed
// and no submission fails before every earlier attempt is dead and the nullifiers were read
// after that.
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
	case anyMayLand:
		return stepTrack
	case f.notes == notesUnread:
		return stepReadNotes
	case f.notes == notesSpentByUs:
		return stepAdopt
	case f.notes == notesUnknown:
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

// afterClass returns the next step after a failure of that class, while the notes are unspent
// and the root is not known to be gone.
func afterClass(f *facts) step {
	switch f.class {
	case "":
		return stepSign
	case shieldpool.ClassTransient, shieldpool.ClassBlockhash, shieldpool.ClassAlreadyProcessed,
		shieldpool.ClassSwapNotReady, shieldpool.ClassRaiseCompute, shieldpool.ClassFeePayerEmpty, shieldpool.ClassSpent:
		// Another payer may have lamports; if no payer has, picking a payer pauses the queue.
		// When the program reports a spent note and the accounts do not, the two reads were
		// made at different slots.
		return stepRetry
	case shieldpool.ClassStaleProof:
		if f.root == rootUnverifiable || f.rootLongMissing {
			return stepFailRoot
		}
		return stepRetry
	case shieldpool.ClassOperator, shieldpool.ClassNotInitialised:
		return stepHold
	default:
		return stepFailClass
	}
}
