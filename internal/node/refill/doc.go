// Package refill paces the starts of the runners that replace claimed ones on a node: they compete with the claims and first commands of
// others for its cores.
//
// How many runners a pool has is control's; which is handed out is plane exec's. It starts no goroutines: whoever starts a runner waits
// here for its turn.
package refill
