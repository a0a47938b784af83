// Package keeper runs the fleet while this server leads: one loop a provider, over the pools in the log.
//
// A Keeper names the fleet the first time, stores the pools of the configuration, opens the providers, and hands changes of
// pools to the loops. It also asks clouds for prices and makes machines ours over ssh. It reads the state, writes the log and
// steers nodes through interfaces that it declares. What is bought is decided by package scaler, and package pool owns the
// machines' states; what operators ask of the fleet is package office's.
//
// Keeper.Run owns all goroutines of a term of office: the loops, the price and ssh loops, and their calls. They end with the
// term, before the next one begins.
package keeper
