// Package references reads ${…} in what a job says: which references a text has, and which variables need others. What they stand
// for is package taskenv's matter. It is pure and starts no goroutines.
package references
