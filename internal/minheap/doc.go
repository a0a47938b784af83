// Package minheap is the one heap of the tree: deadlines, and queues by priority. It has container/heap's algorithm, and so
// its order of equals, for values of one type. It knows no clock and starts no goroutine; whoever has a heap guards it.
package minheap
