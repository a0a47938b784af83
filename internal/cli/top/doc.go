// Package top is "drover top": nodes with what they use, jobs that wait or failed, and environments, looked at again and again. It
// starts no goroutine.
package top
