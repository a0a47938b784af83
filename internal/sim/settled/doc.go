// Package settled says of a state whether it is as it was asked for: what every allocation, job and deployment should have come
// to when nothing happens any more. Each function returns what is not, "" if nothing is. It knows states only; what runs on
// machines the simulation compares itself.
// It starts no goroutines.
package settled
