// Package logtimes says when what stands in a log file was written: lines of logs have no times of their own. Beside each log file stands a
// small one of marks, which the supervisor writes and the agent reads.
//
// It is the format only: it opens no file and starts no goroutine. Tasks may write to the folder of logs, so what is read is not trusted:
// the worst that false marks bring about is a position in the task's own log.
package logtimes
