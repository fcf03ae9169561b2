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
func SwapStatus(ctx context.Context, httpClient *http.Client, url string, id uuid.UUID) verify.SwapStatus {
	client, err := openapi.NewClientWithResponses(url, openapi.WithHTTPClient(httpClient))
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
	data := &answer.JSON200.Data
	return verify.SwapStatus{
		Status: string(data.Status), Phase: string(ptr.Deref(data.SwapPhase, "")), Code: ptr.Deref(data.ErrorCode, ""), Finalized: data.Finalized,
		Signature: ptr.Deref(data.SolanaSignature, ""), Execution: ptr.Deref(data.SwapSignature, ""), Refund: ptr.Deref(data.RefundSignature, ""),
	}
}
