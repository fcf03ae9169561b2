package arena

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/relaypool/relaypool/hack/drill/gather"
	"github.com/relaypool/relaypool/hack/drill/verify"
	"github.com/relaypool/relaypool/hack/sandbox"
	"github.com/relaypool/relaypool/relay/contract"
)

// metrics reads each relay's metrics page, and omits relays that do not answer.
func (a *arena) metrics(ctx context.Context) map[string][]byte {
	pages := make(map[string][]byte)
	for _, r := range a.relays {
		page, err := sandbox.Get(ctx, r.Operations+contract.MetricsPath)
		if err == nil {
			pages[fmt.Sprintf("metrics of relay %d", r.index+1)] = page
		}
	}
	return pages
}

// search looks for the content of every request in logs and metrics.
func (a *arena) search(e *verify.Evidence, pages map[string][]byte) error {
	set := gather.Canaries(e.Records)
	searchText := func(source string, text io.Reader) error {
		hits, read, err := set.Search(text)
		if err != nil {
			return fmt.Errorf("search %s: %w", source, err)
		}
		e.Scanned += read
		for _, hit := range hits {
			e.Leaks = append(e.Leaks, verify.Leak{Source: source, Line: hit.Line, What: hit.Name})
		}
		return nil
	}
	for source, page := range pages {
		if err := searchText(source, bytes.NewReader(page)); err != nil {
			return err
		}
	}
	for _, r := range a.relays {
		file, err := os.Open(filepath.Clean(r.LogFile))
		if err != nil {
			return fmt.Errorf("search logs: %w", err)
		}
		if err := errors.Join(searchText(filepath.Base(r.LogFile), file), file.Close()); err != nil {
			return err
		}
	}
	return nil
}
