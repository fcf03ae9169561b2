module github.com/relaypool/relaypool/hack/bench

go 1.26.8

require (
	github.com/consensys/gnark-crypto v0.22.0
	github.com/iden3/go-iden3-crypto v0.0.17
	github.com/relaypool/relaypool v0.0.0
)

require (
	github.com/bits-and-blooms/bitset v1.25.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)

replace github.com/relaypool/relaypool => ../..
