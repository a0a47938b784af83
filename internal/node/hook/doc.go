// Package hook holds what is done around a task's start, one small file a hook. Prestart hooks run in order before
// every start; what must happen only once a task is remembered by name.
//
// In which order tasks start is package allocrunner's. A hook runs in the goroutine of its task's start.
package hook
