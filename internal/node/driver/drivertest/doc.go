// Package drivertest is the suite that every driver passes: what node/driver promises, tried on a real driver. A driver
// that cannot have an ability says so, with the reason, in its Harness; nothing is left out silently.
//
// It is for tests only. Its goroutines read, write and wait beside a case, and end with what they do it to.
package drivertest
