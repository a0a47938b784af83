// Package fleetplane is the fleet of an agent. It opens the providers of the configuration. It joins what buys machines
// (fleet/keeper), what operators ask (fleet/office) and what measures both to the control plane's log, state and nodes.
//
// It decides nothing: what is bought is fleet/scaler's, and who may join fleet/gate's. Check tries a pool of the configuration
// without a server.
//
// Run owns the goroutines; they end with its context.
package fleetplane
