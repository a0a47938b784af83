// Package settings turns an agent's configuration into that of its parts: the leader and its scheduler, gossip, autopilot, the node, what
// it does for its machine, and the limits of requests.
//
// What a key means and which values it may have is package config's, which has checked them. It opens nothing
// and starts no goroutines.
package settings
