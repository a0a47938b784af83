// Package lifecycle runs a process's parts and stops them in order: workers first, then what they depend on.
//
// What the parts do is theirs. A Group owns the goroutine of each part, and Run returns when all have ended.
package lifecycle
