// Package job is "drover job": job files are read, checked, planned and registered; jobs are shown, changed, dispatched
// and stopped. What comes of a change is followed by package follow. It starts no goroutine.
package job
