// Package learned keeps what was learned of a provider's cloud: quotas, offerings and zones without capacity, how many calls it
// takes, and how long machines boot. It also keeps what does not boot at all, and how often spot machines are taken back.
//
// Whoever makes the calls tells how each ended. The scaler asks what may be bought now, and package pool what may be called.
// Memory and Remember carry over a restart what took machines or money to find out.
//
// It decides nothing, performs nothing, and starts no goroutines. What calls mean is with package provider.
package learned
