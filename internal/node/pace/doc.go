// Package pace says how long an observation of a node waits for others, so that one message carries them: each message to control costs an
// entry of its log.
//
// It decides only, from what it was told: it keeps no observations, asks no clock, and starts no goroutine.
package pace
