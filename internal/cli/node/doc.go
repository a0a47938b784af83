// Package node is "drover node": nodes are shown, drained and made eligible or not, and node pools are kept. It starts no
// goroutine.
package node
