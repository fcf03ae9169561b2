package submission

import (
	"testing"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		facts facts
		want  step
	}{
		"nothing was tried: the notes are looked at": {facts{}, stepReadNotes},
		"then the root":     {facts{notes: notesUnspent}, stepReadRoot},
		"then it is signed": {facts{notes: notesUnspent, root: rootInHistory}, stepSign},
		"a root that has not come yet is waited for":                    {facts{notes: notesUnspent, root: rootNotSeen}, stepRetry},
		"a root history that cannot be told leaves it to the program":   {facts{notes: notesUnspent, root: rootUnverifiable}, stepSign},
		"a root that has left the root history fails it":                {facts{notes: notesUnspent, root: rootGone}, stepFailRoot},
		"a landed attempt lands it, whatever else":                      {facts{verdicts: []verdict{mayLand, expired, landed}, notes: notesSpentByOther, root: rootGone}, stepLand},
		"an attempt that may land is watched, and nothing new signed":   {facts{verdicts: []verdict{expired, mayLand}, notes: notesUnspent, root: rootInHistory}, stepTrack},
		"an attempt that may land keeps a stale root from failing it":   {facts{verdicts: []verdict{mayLand}, notes: notesUnspent, root: rootGone}, stepTrack},
		"dead attempts do not suffice: the notes are looked at":         {facts{verdicts: []verdict{expired, failedOnChain}}, stepReadNotes},
		"dead attempts and unspent notes: the root, then a signature":   {facts{verdicts: []verdict{expired}, notes: notesUnspent, root: rootInHistory}, stepSign},
		"dead attempts and notes that we spent: it landed":              {facts{verdicts: []verdict{expired}, notes: notesSpentByUs}, stepAdopt},
		"notes spent by others fail it":                                 {facts{verdicts: []verdict{expired}, notes: notesSpentByOther}, stepFailSpent},
		"notes taken on a fork that may die are waited for":             {facts{notes: notesSpentNotFinal}, stepRetry},
		"notes spent by nobody knows whom are waited for":               {facts{notes: notesUnknown}, stepNoHistory},
		"a forgotten attempt is not dead":                               {facts{verdicts: []verdict{forgotten}, notes: notesUnspent, root: rootInHistory}, stepNoHistory},
		"a forgotten attempt keeps a stale root from failing it":        {facts{verdicts: []verdict{forgotten}, notes: notesUnspent, root: rootGone}, stepNoHistory},
		"a forgotten attempt's notes are looked at":                     {facts{verdicts: []verdict{forgotten}}, stepReadNotes},
		"a forgotten attempt that spent its notes is found by them":     {facts{verdicts: []verdict{forgotten}, notes: notesSpentByUs}, stepAdopt},
		"bad input fails it":                                            {failed(shieldpool.ClassBadInput, rootInHistory), stepFailClass},
		"policy fails it":                                               {failed(shieldpool.ClassPolicy, rootInHistory), stepFailClass},
		"a recipient without rent fails it":                             {failed(shieldpool.ClassRecipientRent, rootInHistory), stepFailClass},
		"a bug of ours fails it":                                        {failed(shieldpool.ClassBug, rootInHistory), stepFailClass},
		"an operator's fault holds it":                                  {failed(shieldpool.ClassOperator, rootInHistory), stepHold},
		"a pool that is not initialised holds it":                       {failed(shieldpool.ClassNotInitialised, rootInHistory), stepHold},
		"a dry payer is tried again, with another":                      {failed(shieldpool.ClassFeePayerEmpty, rootInHistory), stepRetry},
		"too little compute is tried again":                             {failed(shieldpool.ClassRaiseCompute, rootInHistory), stepRetry},
		"a dead blockhash is tried again":                               {failed(shieldpool.ClassBlockhash, rootInHistory), stepRetry},
		"something transient is tried again":                            {failed(shieldpool.ClassTransient, rootInHistory), stepRetry},
		"a spent note that the accounts do not show is tried again":     {failed(shieldpool.ClassSpent, rootInHistory), stepRetry},
		"a stale root that the root history still holds is tried again": {failed(shieldpool.ClassStaleProof, rootInHistory), stepRetry},
		"a stale root fails it once the root history has lost it":       {failed(shieldpool.ClassStaleProof, rootGone), stepFailRoot},
		"a stale root fails it when the root history cannot be told":    {failed(shieldpool.ClassStaleProof, rootUnverifiable), stepFailRoot},
		"a root that the program never takes fails it in the end":       {facts{notes: notesUnspent, root: rootInHistory, class: shieldpool.ClassStaleProof, rootLongMissing: true}, stepFailRoot},
		"a failure of the past does not hide that notes are unread":     {facts{verdicts: []verdict{failedOnChain}, class: shieldpool.ClassBadInput}, stepReadNotes},
		"a failure of one attempt does not hide another's landing":      {facts{verdicts: []verdict{failedOnChain, landed}, class: shieldpool.ClassBadInput}, stepLand},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := decide(&test.facts); got != test.want {
				t.Errorf("step is %d, want %d", got, test.want)
			}
		})
	}
}

func failed(c shieldpool.Class, r rootFact) facts {
	return facts{verdicts: []verdict{failedOnChain}, notes: notesUnspent, root: r, class: c}
}

// Over every combination of facts: no attempt is signed and no submission fails while an attempt
// may land, or before the notes are known to be unspent by us.
func TestDecideKeepsTheInvariants(t *testing.T) {
	t.Parallel()
	classes := []shieldpool.Class{
		"", shieldpool.ClassStaleProof, shieldpool.ClassSpent, shieldpool.ClassBadInput, shieldpool.ClassOperator, shieldpool.ClassPolicy,
		shieldpool.ClassTransient, shieldpool.ClassNotInitialised, shieldpool.ClassFeePayerEmpty, shieldpool.ClassBlockhash, shieldpool.ClassBug,
	}
	ends := map[step]bool{stepSign: true, stepFailSpent: true, stepFailRoot: true, stepFailClass: true}
	n := 0
	for first := mayLand; first <= forgotten; first++ {
		for second := mayLand; second <= forgotten; second++ {
			for notes := notesUnread; notes <= notesUnknown; notes++ {
				for root := rootUnread; root <= rootUnverifiable; root++ {
					for _, class := range classes {
						f := facts{verdicts: []verdict{first, second}, notes: notes, root: root, class: class}
						got := decide(&f)
						n++
						if anyOf(f.verdicts, landed) != (got == stepLand) {
							t.Errorf("%+v: step %d, but it lands exactly when an attempt has landed", f, got)
						}
						if ends[got] && anyOf(f.verdicts, mayLand, landed) {
							t.Errorf("%+v: step %d while an attempt may be on the chain", f, got)
						}
						if ends[got] && anyOf(f.verdicts, forgotten) && notes != notesSpentByOther {
							t.Errorf("%+v: step %d while nobody can tell whether an attempt landed", f, got)
						}
						if ends[got] && notes != notesUnspent && notes != notesSpentByOther {
							t.Errorf("%+v: step %d before the notes are known to be unspent by us", f, got)
						}
						if got == stepSign && (notes != notesUnspent || root == rootGone || root == rootNotSeen || root == rootUnread) {
							t.Errorf("%+v: signed for nothing", f)
						}
					}
				}
			}
		}
	}
	if n != 5*5*6*5*len(classes) {
		t.Errorf("%d combinations, want all", n)
	}
}

func anyOf(vs []verdict, of ...verdict) bool {
	for _, v := range vs {
		for _, o := range of {
			if v == o {
				return true
			}
		}
	}
	return false
}
