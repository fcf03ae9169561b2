package refs

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// keepLast handles an object that cannot be read now. It copies the last findings of the object
// from last to found, and returns the object as Unread.
func keepLast(o object, wanted []namedValue, last, found map[namedValue]finding, err error) Unread {
	u := Unread{Kind: o.kind, Name: o.name, Cause: string(apierrors.ReasonForError(err)), Err: fmt.Errorf("read %s %s: %w", o.kind, o.name, err)}
	if u.Cause == "" {
		u.Cause = "Unreachable"
	}
	for i, n := range wanted {
		f := last[n]
		found[n] = f
		if i == 0 || f.at.Before(u.LastRead) {
			u.LastRead = f.at
		}
	}
	return u
}
