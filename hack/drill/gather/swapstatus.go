package gather

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	"k8s.io/utils/ptr"

	"github.com/relaypool/relaypool/hack/drill/verify"
	"github.com/relaypool/relaypool/relay/openapi"
)

// SwapStatus asks the relay at a base URL for a swap, as its client does.
func SwapStatus(ctx context.Context, with *http.Client, url string, id uuid.UUID) verify.SwapStatus {
	client, err := openapi.NewClientWithResponses(url, openapi.WithHTTPClient(with))
	if err != nil {
		return verify.SwapStatus{Fault: err.Error()}
	}
	answer, err := client.GetStatusWithResponse(ctx, id)
	switch {
	case err != nil:
		return verify.SwapStatus{Fault: "the relay did not answer"}
	case answer.JSON200 == nil:
		return verify.SwapStatus{Fault: fmt.Sprintf("the relay answered %s", http.StatusText(answer.StatusCode()))}
	}
	said := &answer.JSON200.Data
	return verify.SwapStatus{
		Status: string(said.Status), Phase: string(ptr.Deref(said.SwapPhase, "")), Code: ptr.Deref(said.ErrorCode, ""), Finalized: said.Finalized,
		Signature: ptr.Deref(said.SolanaSignature, ""), Execution: ptr.Deref(said.SwapSignature, ""), Refund: ptr.Deref(said.RefundSignature, ""),
	}
}
