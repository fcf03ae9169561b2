package rpc

import "github.com/relaypool/relaypool/hack/localnet/fault"

// healthyLag is the largest lag in slots at which Agave reports itself healthy.
const healthyLag = 128

// unhealthyLag is the node's lag in slots if the lag makes it unhealthy, else 0.
func (c *call) unhealthyLag() uint64 {
	if c.plan.Lag > healthyLag {
		return c.plan.Lag
	}
	return 0
}

// reportedLag is the lag that getHealth reports, which a fault may make false.
func (c *call) reportedLag() uint64 {
	switch c.plan.Health {
	case fault.HealthOK:
		return 0
	case fault.HealthBehind:
		return max(c.unhealthyLag(), healthyLag+1)
	default:
		return c.unhealthyLag()
	}
}

func (c *call) getHealth(p params) (any, error) {
	if err := p.read(0); err != nil {
		return nil, err
	}
	if behind := c.reportedLag(); behind > 0 {
		return nil, errNodeBehind(behind)
	}
	return "ok", nil
}
