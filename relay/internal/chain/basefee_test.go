package chain

import (
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/relaypool/relaypool/relay/shieldpool"
)

func TestTheBaseFeeIsWhatTwoEndpointsReport(t *testing.T) {
	t.Parallel()
	answer := func(value string) reply { return resultReply(`{"context":{"slot":100},"value":` + value + `}`) }
	for name, test := range map[string]struct {
		a, b reply
		want shieldpool.BaseFee // zero: the fee is not known
	}{
		"both report the fee of a signature": {answer("5000"), answer("5000"), shieldpool.BaseFee{Fixed: 5000}},
		"they contradict each other":         {answer("5000"), answer("900000000"), shieldpool.BaseFee{}},
		"a fee of zero":                      {answer("0"), answer("0"), shieldpool.BaseFee{}},
		"neither knows the blockhash":        {answer("null"), answer("null"), shieldpool.BaseFee{}},
		"neither has the method":             {errorReply(`{"code":-32601,"message":"Method not found"}`), errorReply(`{"code":-32601,"message":"Method not found"}`), shieldpool.BaseFee{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork("a", "b")
				n["a"].set("getFeeForMessage", test.a)
				n["b"].set("getFeeForMessage", test.b)
				e, _ := newEndpoints(t, n, endpointsNamed("a", "b"), nil)
				r := NewBaseFeeRate(e, slog.New(slog.DiscardHandler))
				if err := r.Read(t.Context()); (err == nil) != (test.want != shieldpool.BaseFee{}) {
					t.Errorf("reading returns %v", err)
				}
				if r.Fee() != test.want || r.Fee().Of(200_000) != 5000 {
					t.Errorf("the fee is %+v, %d lamports for 200 000 units; want %+v and 5000", r.Fee(), r.Fee().Of(200_000), test.want)
				}
			})
		})
	}
}
