// Package attention keeps the newest judgement of what in a cluster wants attention, and the newest picture of where its nodes are, so that
// many who ask cost little. Sources gathers what is judged from the planes.
//
// What is judged, and how, is control/insight's. It starts no goroutines.
package attention
