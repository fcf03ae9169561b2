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
		"nothing is known: read the notes":                                  {facts{}, stepReadNotes},
		"the notes are unspent: read the root":                              {facts{notes: notesUnspent}, stepReadRoot},
		"the root is in the history: sign":                                  {facts{notes: notesUnspent, root: rootInHistory}, stepSign},
		"a root that the history does not have yet: retry":                  {facts{notes: notesUnspent, root: rootNotSeen}, stepRetry},
		"an unverifiable root history: the program decides":                 {facts{notes: notesUnspent, root: rootUnverifiable}, stepSign},
		"an evicted root fails the submission":                              {facts{notes: notesUnspent, root: rootGone}, stepFailRoot},
		"a landed attempt takes precedence over all other facts":            {facts{verdicts: []verdict{mayLand, expired, landed}, notes: notesSpentByOther, root: rootGone}, stepLand},
		"an attempt that may land is tracked, and nothing is signed":        {facts{verdicts: []verdict{expired, mayLand}, notes: notesUnspent, root: rootInHistory}, stepTrack},
		"an attempt that may land prevents a failure by a stale root":       {facts{verdicts: []verdict{mayLand}, notes: notesUnspent, root: rootGone}, stepTrack},
		"dead attempts: read the notes first":                               {facts{verdicts: []verdict{expired, failedOnChain}}, stepReadNotes},
		"dead attempts, unspent notes, known root: sign":                    {facts{verdicts: []verdict{expired}, notes: notesUnspent, root: rootInHistory}, stepSign},
		"dead attempts and notes spent by an own transaction: adopt":        {facts{verdicts: []verdict{expired}, notes: notesSpentByUs}, stepAdopt},
		"notes spent by others fail the submission":                         {facts{verdicts: []verdict{expired}, notes: notesSpentByOther}, stepFailSpent},
		"notes spent by others, but not finally: retry":                     {facts{notes: notesSpentNotFinal}, stepRetry},
		"notes spent by an unknown transaction: wait for history":           {facts{notes: notesSpenderUnknown}, stepNoHistory},
		"a forgotten attempt is not dead: wait for history":                 {facts{verdicts: []verdict{forgotten}, notes: notesUnspent, root: rootInHistory}, stepNoHistory},
		"a forgotten attempt prevents a failure by a stale root":            {facts{verdicts: []verdict{forgotten}, notes: notesUnspent, root: rootGone}, stepNoHistory},
		"a forgotten attempt: read the notes first":                         {facts{verdicts: []verdict{forgotten}}, stepReadNotes},
		"a forgotten attempt that spent the notes is adopted":               {facts{verdicts: []verdict{forgotten}, notes: notesSpentByUs}, stepAdopt},
		"bad input fails the submission":                                    {failed(shieldpool.ClassBadInput, rootInHistory), stepFailClass},
		"a policy error fails the submission":                               {failed(shieldpool.ClassPolicy, rootInHistory), stepFailClass},
		"a recipient below rent fails the submission":                       {failed(shieldpool.ClassRecipientRent, rootInHistory), stepFailClass},
		"a bug of the relay fails the submission":                           {failed(shieldpool.ClassBug, rootInHistory), stepFailClass},
		"an operator's fault holds the submission":                          {failed(shieldpool.ClassOperator, rootInHistory), stepHold},
		"an uninitialised pool holds the submission":                        {failed(shieldpool.ClassNotInitialised, rootInHistory), stepHold},
		"an empty payer is retried with another":                            {failed(shieldpool.ClassFeePayerEmpty, rootInHistory), stepRetry},
		"a compute limit that was too low is retried":                       {failed(shieldpool.ClassRaiseCompute, rootInHistory), stepRetry},
		"an expired blockhash is retried":                                   {failed(shieldpool.ClassBlockhash, rootInHistory), stepRetry},
		"a transient error is retried":                                      {failed(shieldpool.ClassTransient, rootInHistory), stepRetry},
		"a spent note that the accounts do not show is retried":             {failed(shieldpool.ClassSpent, rootInHistory), stepRetry},
		"a stale root that is still in the root history is retried":         {failed(shieldpool.ClassStaleProof, rootInHistory), stepRetry},
		"a stale root that was evicted fails the submission":                {failed(shieldpool.ClassStaleProof, rootGone), stepFailRoot},
		"a stale root and an unverifiable root history fail the submission": {failed(shieldpool.ClassStaleProof, rootUnverifiable), stepFailRoot},
		"a root that the program refuses for long fails the submission":     {facts{notes: notesUnspent, root: rootInHistory, class: shieldpool.ClassStaleProof, lagRuledOut: true}, stepFailRoot},
		"a failure on the chain: read the notes first":                      {facts{verdicts: []verdict{failedOnChain}, class: shieldpool.ClassBadInput}, stepReadNotes},
		"early: read the notes":                                             {facts{early: true, verdicts: []verdict{mayLand}}, stepReadNotes},
		"early: read the root":                                              {facts{early: true, verdicts: []verdict{mayLand}, notes: notesUnspent}, stepReadRoot},
		"early: sign while the root is in the history":                      {facts{early: true, verdicts: []verdict{expired, mayLand}, notes: notesUnspent, root: rootInHistory}, stepSign},
		"early, but the root is not in the history: track":                  {facts{early: true, verdicts: []verdict{mayLand}, notes: notesUnspent, root: rootGone}, stepTrack},
		"early, but others spent the notes: track":                          {facts{early: true, verdicts: []verdict{mayLand}, notes: notesSpentByOther}, stepTrack},
		"early, but an attempt spent the notes: adopt":                      {facts{early: true, verdicts: []verdict{mayLand}, notes: notesSpentByUs}, stepAdopt},
		"early, but the simulation fails: track":                            {facts{early: true, verdicts: []verdict{mayLand}, class: shieldpool.ClassBadInput}, stepTrack},
		"early, but an attempt is forgotten: track":                         {facts{early: true, verdicts: []verdict{mayLand, forgotten}, notes: notesUnspent, root: rootInHistory}, stepTrack},
		"a failed attempt and a landed one: landed":                         {facts{verdicts: []verdict{failedOnChain, landed}, class: shieldpool.ClassBadInput}, stepLand},
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

// With every combination of facts, no submission fails while an attempt may land, or before the notes
// are known to be unspent by us. No attempt is signed then, except an early attempt.
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
			for notes := notesUnread; notes <= notesSpenderUnknown; notes++ {
				for root := rootUnread; root <= rootUnverifiable; root++ {
					for i := range 2 * len(classes) {
						f := facts{verdicts: []verdict{first, second}, notes: notes, root: root, class: classes[i/2], early: i%2 == 1}
						got := decide(&f)
						n++
						if anyOf(f.verdicts, landed) != (got == stepLand) {
							t.Errorf("%+v: step %d; want stepLand if, and only if, an attempt has landed", f, got)
						}
						early := f.early && got == stepSign && !anyOf(f.verdicts, landed)
						if ends[got] && anyOf(f.verdicts, mayLand, landed) && !early {
							t.Errorf("%+v: step %d while an attempt may be on the chain", f, got)
						}
						if ends[got] && anyOf(f.verdicts, forgotten) && notes != notesSpentByOther {
							t.Errorf("%+v: step %d while no history shows whether an attempt landed", f, got)
						}
						if ends[got] && notes != notesUnspent && notes != notesSpentByOther {
							t.Errorf("%+v: step %d before the notes are known to be unspent by us", f, got)
						}
						if got == stepSign && f.early && anyOf(f.verdicts, mayLand) && (anyOf(f.verdicts, forgotten) || root != rootInHistory || f.class != "") {
							t.Errorf("%+v: an early attempt would probably fail", f)
						}
						if got == stepSign && (notes != notesUnspent || root == rootGone || root == rootNotSeen || root == rootUnread) {
							t.Errorf("%+v: stepSign, although the transaction would fail", f)
						}
					}
				}
			}
		}
	}
	if n != 2*5*5*6*5*len(classes) {
		t.Errorf("%d combinations were checked, want %d", n, 2*5*5*6*5*len(classes))
	}
}

func anyOf(vs []verdict, wanted ...verdict) bool {
	for _, v := range vs {
		for _, w := range wanted {
			if v == w {
				return true
			}
		}
	}
	return false
}
