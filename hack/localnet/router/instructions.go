package router

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/gagliardetto/solana-go"

	"github.com/relaypool/relaypool/hack/localnet/market"
	"github.com/relaypool/relaypool/hack/localnet/token"
)

// computeUnits is the compute unit limit that the router proposes.
const computeUnits = 120_000

// swapRequest has the fields that the router reads from the body of POST /swap-instructions.
type swapRequest struct {
	Quote *quote           `json:"quoteResponse"`
	User  solana.PublicKey `json:"userPublicKey"`
	Wrap  *bool            `json:"wrapAndUnwrapSol"`
	// Destination, if set, is the token account that gets the output. The default is
	// the user's associated token account.
	Destination solana.PublicKey `json:"destinationTokenAccount"`
}

type instructions struct {
	TokenLedger       *instruction       `json:"tokenLedgerInstruction"`
	ComputeBudget     []instruction      `json:"computeBudgetInstructions"`
	Setup             []instruction      `json:"setupInstructions"`
	Swap              instruction        `json:"swapInstruction"`
	Cleanup           *instruction       `json:"cleanupInstruction"`
	Other             []instruction      `json:"otherInstructions"`
	Tables            []solana.PublicKey `json:"addressLookupTableAddresses"`
	PrioritizationFee uint64             `json:"prioritizationFeeLamports"`
	ComputeUnitLimit  uint64             `json:"computeUnitLimit"`
}

type instruction struct {
	Program  solana.PublicKey `json:"programId"`
	Accounts []account        `json:"accounts"`
	Data     string           `json:"data"`
}

type account struct {
	Key      solana.PublicKey `json:"pubkey"`
	Signer   bool             `json:"isSigner"`
	Writable bool             `json:"isWritable"`
}

func encode(program solana.PublicKey, metas []*solana.AccountMeta, data []byte) instruction {
	out := instruction{Program: program, Accounts: []account{}, Data: base64.StdEncoding.EncodeToString(data)}
	for _, m := range metas {
		out.Accounts = append(out.Accounts, account{m.PublicKey, m.IsSigner, m.IsWritable})
	}
	return out
}

// instructions answers POST /swap-instructions. As Jupiter does, it trusts the quote
// that the client sends back: the program on the chain checks the minimum output.
func (r *Router) instructions(req *http.Request, d *draft) (any, error) {
	var request swapRequest
	if err := json.NewDecoder(req.Body).Decode(&request); err != nil {
		return nil, invalidRequest(fmt.Sprintf("Failed to deserialize the JSON body: %v", err))
	}
	switch {
	case request.Quote == nil || request.User.IsZero():
		return nil, invalidRequest("quoteResponse and userPublicKey are required")
	case request.Wrap == nil || *request.Wrap:
		return nil, invalidRequest("the local router does not wrap SOL: wrapAndUnwrapSol must be false")
	}
	return r.instructionsFor(&request, d)
}

// built is the body of an answer to GET /v2/build: a quote and its instructions.
type built struct {
	*quote
	*instructions
	TablesV1 *struct{}                               `json:"addressLookupTableAddresses,omitempty"` // hides that of v1
	Tables   map[solana.PublicKey][]solana.PublicKey `json:"addressesByLookupTableAddress"`
}

// build answers GET /v2/build. Its tables' contents are left out: a client that trusted them
// would find no address.
func (r *Router) build(req *http.Request, d *draft) (any, error) {
	user, err := solana.PublicKeyFromBase58(req.URL.Query().Get("taker"))
	if err != nil {
		return nil, invalidRequest(fmt.Sprintf("Query parameter taker cannot be parsed: %v", err))
	}
	out := &built{Tables: make(map[solana.PublicKey][]solana.PublicKey)}
	if out.quote, err = r.quote(req, d); err != nil {
		return nil, err
	}
	honest := *out.quote // a quote that lies about the mint still comes with instructions
	honest.OutputMint = honest.RoutePlan[0].SwapInfo.OutputMint
	if out.instructions, err = r.instructionsFor(&swapRequest{Quote: &honest, User: user}, d); err != nil {
		return nil, err
	}
	for _, table := range out.instructions.Tables {
		out.Tables[table] = []solana.PublicKey{}
	}
	return out, nil
}

// instructionsFor makes the instructions that carry out the request's quote.
func (r *Router) instructionsFor(request *swapRequest, d *draft) (*instructions, error) {
	m, _, _ := r.market(request.Quote.OutputMint)
	if m == nil || request.Quote.InputMint != solana.WrappedSol || request.Quote.SwapMode != exactIn {
		return nil, noRoute()
	}
	user := request.User
	if d.applies(OtherUser) {
		user = padding(1)
	}
	trade, err := tradeOf(request.Quote, user, d)
	if err != nil {
		return nil, err
	}
	// Jupiter's set-up instructions create the user's token account for the output.
	create, err := token.CreateIdempotent(user, user, request.Quote.OutputMint)
	if err != nil {
		return nil, err
	}
	out := &instructions{
		ComputeBudget: []instruction{
			encode(solana.ComputeBudget, nil, binary.LittleEndian.AppendUint32([]byte{2}, computeUnits)),
		},
		Setup: []instruction{encode(create.ProgID, create.AccountValues, create.DataBytes)},
		Other: []instruction{}, Tables: []solana.PublicKey{}, ComputeUnitLimit: computeUnits,
	}
	if !request.Destination.IsZero() {
		trade.Tokens, out.Setup = request.Destination, []instruction{}
	}
	swap := m.Swap(*trade)
	swap.AccountValues = append(swap.AccountValues, paddingAccounts(request.Quote)...)
	if !r.opts.Table.IsZero() {
		out.Tables = append(out.Tables, r.opts.Table)
	}
	applyLies(swap, out, m, d)
	out.Swap = encode(swap.ProgID, swap.AccountValues, swap.DataBytes)
	return out, nil
}

// tradeOf makes the trade of a quote, with the lies of the draft about amounts.
func tradeOf(q *quote, user solana.PublicKey, d *draft) (*market.Trade, error) {
	out := &market.Trade{User: user, AmountIn: uint64(q.InAmount), MinOut: uint64(q.Threshold)}
	var err error
	if out.WSOL, _, err = solana.FindAssociatedTokenAddress(user, solana.WrappedSol); err != nil {
		return nil, err
	}
	if out.Tokens, _, err = solana.FindAssociatedTokenAddress(user, q.OutputMint); err != nil {
		return nil, err
	}
	if d.applies(LowThreshold) {
		out.MinOut = 0
	}
	if d.applies(ShortOutput) {
		out.KeepBPS = market.MaxBPS / 2
	}
	if d.applies(PartialFill) {
		out.AmountIn, out.MinOut = out.AmountIn/2, out.MinOut/2
	}
	return out, nil
}

// paddingAccounts returns the extra accounts of a wide route.
func paddingAccounts(q *quote) []*solana.AccountMeta {
	first := 0
	if q.Outside {
		first = tablePadding
	}
	out := make([]*solana.AccountMeta, max(0, min(q.Wide, maxWide)))
	for i := range out {
		out[i] = solana.Meta(padding(first + i))
	}
	return out
}

// applyLies applies the draft's lies about program, accounts and tables to an answer.
func applyLies(swap *solana.GenericInstruction, out *instructions, m *market.Market, d *draft) {
	add := func(m *solana.AccountMeta) { swap.AccountValues = append(swap.AccountValues, m) }
	if d.applies(WrongProgram) {
		swap.ProgID = solana.MemoProgramID
	}
	if rule, ok := d.lies[PayerAccount]; ok {
		add(solana.Meta(rule.Account).SIGNER().WRITE())
	}
	if rule, ok := d.lies[PayerWritable]; ok {
		add(solana.Meta(rule.Account).WRITE())
	}
	if d.applies(ExtraSigner) {
		add(solana.Meta(padding(2)).SIGNER())
	}
	if d.applies(BogusTable) {
		out.Tables = []solana.PublicKey{padding(3)}
	}
	if d.applies(ForeignTable) {
		out.Tables = []solana.PublicKey{m.Address}
	}
}
