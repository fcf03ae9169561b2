package poolcheck

func (f *Facts) genesis() Check {
	c := Check{Name: CheckGenesis, State: OK, Expected: "genesis hash " + f.Target.Genesis.String()}
	if f.Target.Genesis.IsZero() {
		c.Expected = "any genesis hash, because none is declared"
	}
	switch {
	case f.GenesisErr != nil:
		c.State, c.Reason = Unknown, ReasonChainUnavailable
		c.Found, c.Remedy = "the genesis hash could not be read: "+f.GenesisErr.Error(), "check the RPC endpoint and its credentials"
	case !f.Target.Genesis.IsZero() && f.Genesis != f.Target.Genesis:
		c.State, c.Reason, c.Found = Failed, ReasonWrongCluster, "genesis hash "+f.Genesis.String()
		c.Remedy = "correct the RPC endpoint's URL, or the cluster that is declared"
	default:
		c.Found = "genesis hash " + f.Genesis.String()
	}
	return c
}
