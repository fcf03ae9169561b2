package app

import (
	"context"
	"errors"
	"fmt"
)

// maxIndexLag is how many leaves of the tree the served list may lack before /health reports it.
// Client SDKs do not use a list that lacks more.
const maxIndexLag = 50

func (a *App) checkIndex(context.Context) error {
	r := a.commitmentIndex.Status()
	switch {
	case r.Problem != "":
		return errors.New(r.Problem)
	case r.Lag() > maxIndexLag:
		return fmt.Errorf("GET /commitments serves %d of %d leaves", r.Published, r.ChainNext)
	}
	return nil
}
