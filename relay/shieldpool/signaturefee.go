package shieldpool

// SignatureFee is the network's fee for one signature, in lamports.
const SignatureFee = 5000
