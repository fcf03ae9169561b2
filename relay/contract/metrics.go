package contract

// Metric is one of the relay's own metrics: its name, what it counts, and its labels.
type Metric struct {
	Name, Help string
	Labels     []string
}

// The relay's metrics. Labels take values from fixed sets; nothing of a
// request's content is among them.
var (
	MetricBuildInfo = Metric{"relaypool_build_info", "Always 1; the labels tell what runs.", []string{"version", "revision"}}

	MetricHTTPRequests = Metric{"relaypool_http_requests_total", "Requests answered, by route and status.", []string{"route", "method", "status"}}
	MetricHTTPDuration = Metric{"relaypool_http_request_duration_seconds", "Time to answer, waits for outcomes included.", []string{"route", "method"}}

	MetricSubmissions = Metric{"relaypool_submissions_total", "Submissions done, by kind and outcome: completed and later finalized, each counted, or the code of the failure.", []string{"kind", "outcome"}}
	MetricStages      = Metric{"relaypool_stage_duration_seconds", "Time of each stage of a submission: verify, admission, queue, simulate, sign, confirm, finalize.", []string{"stage"}}
	MetricAttempts    = Metric{"relaypool_attempts_total", "What happened to signed transactions: signed, refused, rebroadcast, expired, reopened, held.", []string{"event"}}
	MetricWatching    = Metric{"relaypool_watched_submissions", "Submissions that this pod holds and follows.", nil}
	MetricPending     = Metric{"relaypool_backlog_pending", "Submissions of the whole fleet that wait for a worker.", nil}
	MetricProcessing  = Metric{"relaypool_backlog_processing", "Submissions of the whole fleet under way.", nil}
	MetricOldest      = Metric{"relaypool_backlog_oldest_age_seconds", "Age of the fleet's oldest pending submission.", nil}

	MetricRPCCalls    = Metric{"relaypool_rpc_calls_total", "RPC calls by method and class of answer.", []string{"method", "class"}}
	MetricRPCDuration = Metric{"relaypool_rpc_call_duration_seconds", "Time of RPC calls by method.", []string{"method"}}

	MetricPayerBalance = Metric{"relaypool_fee_payer_balance_lamports", "The fee payer's last balance that could be read.", nil}
	MetricPayerAge     = Metric{"relaypool_fee_payer_balance_age_seconds", "Age of that reading; a failed one leaves the last good one, growing older.", nil}

	MetricTreeLeaves    = Metric{"relaypool_tree_leaves", "Leaves of the pool's Merkle tree on the chain.", nil}
	MetricTreeCheck     = Metric{"relaypool_tree_self_check", "1 when the tree account agrees with itself, 0 when the profile does not fit the program.", nil}
	MetricIndexLeaves   = Metric{"relaypool_index_leaves", "Leaves that the commitment index has read.", nil}
	MetricIndexServed   = Metric{"relaypool_index_published_leaves", "Leaves whose root the chain confirmed: what GET /commitments serves.", nil}
	MetricIndexVerified = Metric{"relaypool_index_verified", "1 when all that the index has read is confirmed by the chain's root.", nil}
)

// Metrics lists all of them, in the order of the documentation.
func Metrics() []Metric {
	return []Metric{
		MetricBuildInfo, MetricHTTPRequests, MetricHTTPDuration,
		MetricSubmissions, MetricStages, MetricAttempts, MetricWatching,
		MetricPending, MetricProcessing, MetricOldest,
		MetricRPCCalls, MetricRPCDuration, MetricPayerBalance, MetricPayerAge,
		MetricTreeLeaves, MetricTreeCheck, MetricIndexLeaves, MetricIndexServed, MetricIndexVerified,
	}
}
