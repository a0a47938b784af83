// Package scaler decides which machines to buy and which to return. Decide is a pure function: the same input gives
// the same actions, with a reason for each. The live loop, the dry run, the explain endpoint and the simulator call it.
//
// What was learned of a cloud (quotas, capacity, rates, boot times) is in a learned.Cloud, which its owner updates with
// every result of a call, and which Decide only reads.
//
// It performs nothing, keeps nothing, and starts no goroutines: package pool does what it says.
package scaler
