// Package trial runs hostile programs in real sandboxes of this machine, in their short forms, and says which of them
// were contained: what drover doctor shows. It uses a driver as an agent does, and knows nothing of its inside.
//
// It starts no goroutines that outlive Run.
package trial
