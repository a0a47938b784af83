// Package clouds is what an agent's configuration says of the metadata services of clouds: which are asked about the machine, and
// how stubbornly. Nomad's older options of a node, which name some of them, are here, too. Asking them is package node/cloud's.
//
// It is data, and starts no goroutines.
package clouds
